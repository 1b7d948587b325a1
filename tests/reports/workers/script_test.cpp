// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/script.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/base/schema/reasons.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Three rounds from `begin` on, that vary by 1 %.
WorkersPoint point(int workers, double rate, double stall = 0, int begin = 0) {
  WorkersPoint one;
  one.workers = workers;
  for (int round = 0; round < 3; ++round) {
    one.rates[begin + round] = rate * (1 + 0.005 * (round - 1));
    one.stalls.push_back(stall);
  }
  return one;
}

ScriptFacts facts_of(WorkersPoints points, int own = 0) {
  ScriptFacts facts;
  facts.script = "t.py";
  facts.batch = 8;
  facts.points = std::move(points);
  for (WorkersPoint& one : facts.points) one.own = one.workers == own;
  return facts;
}

TEST(ScriptWorkers, TheFewestNearTheBestAreRecommended) {
  const WorkersAdvice advice = advise_script(
      facts_of({point(0, 100, 0.5), point(2, 198, 0.01), point(4, 200), point(8, 190)}));
  EXPECT_EQ(advice.recommended, 2);
  EXPECT_TRUE(advice.certain);
  EXPECT_EQ(advice.reason, reason::kMoreDoNotLoadMore);
  EXPECT_EQ(advice.pytorch,
            "DataLoader(..., num_workers=2, prefetch_factor=2, persistent_workers=True)");
}

TEST(ScriptWorkers, TheScriptsOwnNumberIsKept) {
  const WorkersAdvice advice =
      advise_script(facts_of({point(0, 100, 0.5), point(2, 200), point(4, 199)}, 2));
  EXPECT_EQ(advice.recommended, 2);
  EXPECT_THAT(advice.because, ::testing::StartsWith("Keep num_workers=2"));
}

TEST(ScriptWorkers, WithoutAGainNoWorkersAreUsed) {
  const WorkersAdvice advice = advise_script(facts_of({point(0, 100), point(1, 97)}));
  EXPECT_EQ(advice.recommended, 0);
  EXPECT_TRUE(advice.certain);
  EXPECT_EQ(advice.pytorch, "DataLoader(..., num_workers=0)");
}

TEST(ScriptWorkers, TheLargestNumberIsUncertainWhileTrainingWaits) {
  const WorkersAdvice waits = advise_script(facts_of({point(0, 100, 0.8), point(2, 300, 0.5)}));
  EXPECT_EQ(waits.reason, reason::kMoreNotMeasured);
  EXPECT_FALSE(waits.certain);
  const WorkersAdvice fed = advise_script(facts_of({point(0, 100, 0.8), point(2, 300, 0.001)}));
  EXPECT_TRUE(fed.certain);
}

TEST(ScriptWorkers, AFewerNumberThatMayBeAsFastIsUncertain) {
  WorkersPoint noisy = point(1, 190, 0.1);
  noisy.rates[1] = 205;
  EXPECT_FALSE(advise_script(facts_of({point(0, 100, 0.5), noisy, point(2, 200)})).certain);
}

TEST(ScriptWorkers, ALargerNumberThatMayBeFasterIsUncertain) {
  WorkersPoint noisy = point(2, 100);
  EXPECT_TRUE(advise_script(facts_of({point(0, 100), noisy})).certain);
  noisy.rates[1] = 130;
  noisy.rates[2] = 80;
  EXPECT_FALSE(advise_script(facts_of({point(0, 100), noisy})).certain);
  noisy.rates.erase(2);  // two rounds have no interval
  EXPECT_FALSE(advise_script(facts_of({point(0, 150), noisy})).certain);
}

TEST(ScriptWorkers, NumbersOfTwoRunsAreComparedThroughTheScriptsOwn) {
  WorkersPoint own = point(0, 100, 0.5);
  for (const auto& [round, rate] : point(0, 50, 0.5, 3).rates) own.rates[round] = rate;
  // The second run is half as fast: 3 workers are as fast as 4.
  const WorkersAdvice advice =
      advise_script(facts_of({own, point(2, 150, 0.3), point(3, 100, 0, 3), point(4, 200)}));
  EXPECT_EQ(advice.recommended, 3);
}

TEST(ScriptWorkers, NothingMeasuredIsNoAnswer) {
  const WorkersAdvice advice = advise_script(ScriptFacts());
  EXPECT_FALSE(advice.recommended);
  EXPECT_EQ(advice.reason, reason::kNothingMeasured);
}

ScriptFacts loading(double demand) {
  ScriptFacts facts = facts_of({point(0, 100), point(2, 200), point(4, 201)});
  facts.only_loads = true;
  facts.demand = {demand, "--samples-per-second"};
  return facts;
}

TEST(ScriptWorkers, AScriptThatOnlyLoadsHasAStallOnlyWithADemand) {
  const auto answer_of = [](double demand) {
    const ScriptFacts facts = loading(demand);
    return to_json(facts, advise_script(facts));
  };
  const auto fast = answer_of(0), paced = answer_of(150);
  for (const auto& answer : {fast, paced}) {
    EXPECT_EQ(answer["recommended"], 2);
    EXPECT_EQ(answer["as"], "pytorch");
    EXPECT_FALSE(answer["table"][0]["own"]);
  }
  EXPECT_TRUE(fast["demand"].is_null());
  EXPECT_TRUE(fast["feeds"].is_null());
  EXPECT_TRUE(fast["table"][1]["stall_fraction"].is_null());
  EXPECT_EQ(paced["demand"]["samples_per_s_per_device"], 150);
  EXPECT_TRUE(paced["table"][1]["stall_fraction"].is_number());
}

TEST(ScriptWorkers, TheGapBelowTheAnswerIsRefined) {
  EXPECT_THAT(numbers_to_refine(facts_of({point(0, 100), point(2, 200), point(4, 300)})),
              ElementsAre(4, 3));
  EXPECT_THAT(numbers_to_refine(facts_of({point(8, 200), point(16, 300), point(32, 301)}, 8)),
              ElementsAre(16, 10, 12, 14));
  EXPECT_THAT(numbers_to_refine(facts_of({point(0, 300), point(1, 200)})), ElementsAre(0, 1));
  EXPECT_THAT(numbers_to_refine(facts_of({point(0, 100), point(1, 200), point(2, 150)})),
              ElementsAre(1, 0, 2));
  EXPECT_THAT(numbers_to_refine(ScriptFacts()), IsEmpty());
}

BenchRow row(double rate) {
  BenchRow one;
  one.counters = {{"samples_per_s", rate}, {"stall_fraction", 0.1}, {"first_batch_s", 0.2}};
  return one;
}

SampleLine line(int workers, bool own) {
  SampleLine one;
  one.json = {{"world", 2},
              {"parameters",
               {{"workers", std::to_string(workers)},
                {"own", own ? "1" : "0"},
                {"global_batch", "16"},
                {"prefetch", "4"},
                {"bytes", "80"},
                {"device", "cuda"}}}};
  return one;
}

TEST(ScriptWorkers, ANumberRepeatsOncePerRound) {
  ScriptFacts facts;
  for (int run = 0; run < 2; ++run)
    add_turns(facts, {row(10), row(20), row(21), row(11)},
              {line(2, true), line(1, false), line(1, false), line(2, true)});
  ASSERT_EQ(facts.points.size(), 2);
  EXPECT_EQ(facts.points[0].workers, 1);
  EXPECT_THAT(facts.points[0].rates,
              ElementsAre(std::pair(0, 20), std::pair(1, 21), std::pair(2, 20), std::pair(3, 21)));
  EXPECT_TRUE(facts.points[1].own);
  EXPECT_EQ(facts.ranks, 2);
  EXPECT_EQ(facts.batch, 8);
  EXPECT_EQ(facts.sample_bytes, 10);
  EXPECT_EQ(facts.prefetch, 4);
  EXPECT_TRUE(facts.gpu);
}

TEST(ScriptWorkers, RowsWithoutSamplesAreRefused) {
  ScriptFacts facts;
  EXPECT_THROW(add_turns(facts, {row(10)}, {}), InputError);
  EXPECT_THROW(add_turns(facts, {row(0)}, {line(1, false)}), InputError);
}

}  // namespace
}  // namespace howmany::reports
