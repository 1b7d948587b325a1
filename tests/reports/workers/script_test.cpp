// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "core/base/schema/reasons.h"
#include "reports/results/record.h"
#include "reports/workers/advise.h"
#include "reports/workers/bench.h"
#include "reports/workers/render.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;

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

WorkersFacts facts_of(WorkersPoints points, int own = 0) {
  WorkersFacts facts;
  facts.as = "script";
  facts.script = "t.py";
  facts.asked.batch = 8;
  facts.points = std::move(points);
  for (WorkersPoint& one : facts.points) one.own = one.workers == own;
  return facts;
}

TEST(ScriptWorkers, TheFewestNearTheBestAreRecommended) {
  const WorkersAdvice advice = advise_workers(
      facts_of({point(0, 100, 0.5), point(2, 198, 0.01), point(4, 200), point(8, 190)}));
  EXPECT_EQ(advice.recommended, 2);
  EXPECT_TRUE(advice.certain);
  EXPECT_EQ(advice.reason, reason::kMoreDoNotLoadMore);
  EXPECT_EQ(advice.pytorch,
            "DataLoader(..., num_workers=2, prefetch_factor=2, persistent_workers=True)");
}

TEST(ScriptWorkers, TheScriptsOwnNumberIsKept) {
  const WorkersAdvice advice =
      advise_workers(facts_of({point(0, 100, 0.5), point(2, 200), point(4, 199)}, 2));
  EXPECT_EQ(advice.recommended, 2);
}

TEST(ScriptWorkers, WithoutAGainNoWorkersAreUsed) {
  const WorkersAdvice advice = advise_workers(facts_of({point(0, 100), point(1, 97)}));
  EXPECT_EQ(advice.recommended, 0);
  EXPECT_TRUE(advice.certain);
  EXPECT_EQ(advice.pytorch, "DataLoader(..., num_workers=0)");
}

TEST(ScriptWorkers, TheLargestNumberIsUncertainWhileTrainingWaits) {
  const WorkersAdvice waits = advise_workers(facts_of({point(0, 100, 0.8), point(2, 300, 0.5)}));
  EXPECT_EQ(waits.reason, reason::kMoreNotMeasured);
  EXPECT_FALSE(waits.certain);
  const WorkersAdvice fed = advise_workers(facts_of({point(0, 100, 0.8), point(2, 300, 0.001)}));
  EXPECT_TRUE(fed.certain);
}

TEST(ScriptWorkers, AFewerNumberThatMayBeAsFastIsUncertain) {
  WorkersPoint noisy = point(1, 190, 0.1);
  noisy.rates[1] = 205;
  EXPECT_FALSE(advise_workers(facts_of({point(0, 100, 0.5), noisy, point(2, 200)})).certain);
}

TEST(ScriptWorkers, ALargerNumberThatMayBeFasterIsUncertain) {
  WorkersPoint noisy = point(2, 100);
  EXPECT_TRUE(advise_workers(facts_of({point(0, 100), noisy})).certain);
  noisy.rates[1] = 130;
  noisy.rates[2] = 80;
  EXPECT_FALSE(advise_workers(facts_of({point(0, 100), noisy})).certain);
  noisy.rates.erase(2);  // two rounds have no interval
  EXPECT_FALSE(advise_workers(facts_of({point(0, 120), noisy})).certain);
}

TEST(ScriptWorkers, NumbersOfTwoRunsAreComparedThroughTheScriptsOwn) {
  WorkersPoint own = point(0, 100, 0.5);
  for (const auto& [round, rate] : point(0, 50, 0.5, 3).rates) own.rates[round] = rate;
  // The second run is half as fast: 3 workers are as fast as 4.
  const WorkersAdvice advice =
      advise_workers(facts_of({own, point(2, 150, 0.3), point(3, 100, 0, 3), point(4, 200)}));
  EXPECT_EQ(advice.recommended, 3);
}

TEST(ScriptWorkers, NothingMeasuredIsNoAnswer) {
  const WorkersAdvice advice = advise_workers(WorkersFacts());
  EXPECT_FALSE(advice.recommended);
  EXPECT_EQ(advice.reason, reason::kNothingMeasured);
}

WorkersFacts loading(double demand) {
  WorkersFacts facts = facts_of({point(0, 100, 0.3), point(2, 200), point(4, 201)});
  facts.as = "pytorch";
  facts.asked.demand = demand;
  return facts;
}

TEST(ScriptWorkers, AScriptThatOnlyLoadsHasAStallOnlyWithADemand) {
  const auto answer_of = [](double demand) {
    const WorkersFacts facts = loading(demand);
    return to_json(facts, advise_workers(facts));
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

TEST(WorkersSearch, RefinesTheGapBelowTheAnswer) {
  const auto refined = [](const WorkersPoints& points) { return next_numbers(facts_of(points)); };
  EXPECT_THAT(refined({point(0, 100, 0.9), point(2, 200, 0.9), point(4, 300)}), ElementsAre(3, 4));
  EXPECT_THAT(refined({point(8, 200, 0.9), point(16, 300), point(32, 298)}),
              ElementsAre(10, 12, 14, 16));
  EXPECT_THAT(refined({point(0, 300), point(1, 200)}), ElementsAre(0, 1));
  EXPECT_THAT(refined({point(0, 100, 0.9), point(1, 200), point(2, 150)}), ElementsAre(0, 1, 2));
  EXPECT_THAT(refined({point(1, 300), point(2, 200), point(3, 150)}), ElementsAre(1, 2));
}

WorkersPoint with_turns(int workers, double rate, double stall, int turns) {
  WorkersPoint one = point(workers, rate, stall);
  for (int round = turns; round < 3; ++round) one.rates.erase(round), one.stalls.pop_back();
  return one;
}

TEST(ScriptWorkers, EachNumberThatCanWinNeedsThreeTurns) {
  const auto facts = [](int turns) {
    return facts_of({point(0, 100, 0.5), with_turns(2, 200, 0.001, turns), point(4, 160)});
  };
  EXPECT_FALSE(advise_workers(facts(1)).certain);
  EXPECT_FALSE(advise_workers(facts(2)).certain);
  EXPECT_TRUE(advise_workers(facts(3)).certain);
  WorkersFacts clear = facts_of({with_turns(0, 50, 0.8, 1), point(2, 200, 0.001), point(4, 160)});
  EXPECT_TRUE(advise_workers(clear).certain) << "0 workers cannot win";
  EXPECT_THAT(next_numbers(clear), ::testing::Not(::testing::Contains(0)));
  clear.points[2] = with_turns(4, 199, 0, 1);
  EXPECT_FALSE(advise_workers(clear).certain);
  EXPECT_THAT(next_numbers(clear), ::testing::Contains(4)) << "it has more turns";
}

// The rates that timm's train.py had, with a stall of 3.1 % without workers.
TEST(ScriptWorkers, AGainBeyondTheStallIsMeasuredAgainAndStaysUncertain) {
  WorkersFacts facts = facts_of({point(0, 11.9, 0.031), point(1, 29.2, 0.01), point(2, 48.9, 0),
                                 point(4, 56.3, 0), point(8, 23.6, 0)});
  EXPECT_FALSE(advise_workers(facts).certain);
  EXPECT_THAT(next_numbers(facts), ::testing::IsSupersetOf({0, 4}));
  for (WorkersPoint& one : facts.points) {
    const WorkersPoint again = point(one.workers, one.rates[1], one.stalls[0], 3);
    one.rates.insert(again.rates.begin(), again.rates.end());
    one.stalls.insert(one.stalls.end(), again.stalls.begin(), again.stalls.end());
  }
  EXPECT_FALSE(advise_workers(facts).certain);
  facts.points[0].stalls.assign(6, 0.8);
  facts.points[1].stalls.assign(6, 0.5);
  facts.points[2].stalls.assign(6, 0.2);
  EXPECT_TRUE(advise_workers(facts).certain) << "the stall explains the gain";
}

TEST(ScriptWorkers, OverlappingNumbersAreNotCalledFaster) {
  WorkersPoint own = point(4, 100, 0.001), other = point(1, 100, 0.001);
  for (int round = 0; round < 3; ++round) other.rates[round] *= round == 1 ? 1.05 : 0.99;
  const WorkersAdvice advice = advise_workers(facts_of({other, own}, 4));
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_THAT(advice.because, ::testing::HasSubstr("no slower than"));
}

TEST(ScriptWorkers, LinesToCopyAreMarkedIfUncertain) {
  const WorkersAdvice sure = advise_workers(facts_of({point(0, 100, 0.5), point(2, 200)}));
  const WorkersAdvice unsure =
      advise_workers(facts_of({point(0, 100, 0.5), with_turns(2, 200, 0, 1)}));
  EXPECT_TRUE(sure.certain);
  EXPECT_THAT(sure.pytorch, ::testing::Not(::testing::HasSubstr("uncertain")));
  for (const std::string& line : {unsure.pytorch, unsure.slurm})
    EXPECT_THAT(line, ::testing::EndsWith("# uncertain"));
  EXPECT_THAT(unsure.because, ::testing::StartsWith("Uncertain"));
}

BenchRow row(double rate, int workers) {
  BenchRow one;
  one.name = "loader/script/t.py/workers:" + std::to_string(workers);
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
  WorkersFacts facts;
  const std::vector<BenchRow> rows = {row(10, 2), row(20, 1), row(21, 1), row(11, 2)};
  for (int run = 0; run < 2; ++run) {
    add_turns(facts, rows);
    add_script(facts, rows, {line(2, true), line(1, false), line(1, false), line(2, true)});
  }
  ASSERT_EQ(facts.points.size(), 2);
  EXPECT_EQ(facts.points[0].workers, 1);
  EXPECT_THAT(facts.points[0].rates,
              ElementsAre(std::pair(0, 20), std::pair(1, 21), std::pair(2, 20), std::pair(3, 21)));
  EXPECT_TRUE(facts.points[1].own);
  EXPECT_EQ(facts.asked.devices, 2);
  EXPECT_EQ(facts.asked.batch, 8);
  EXPECT_EQ(facts.sample_bytes, 10);
  EXPECT_EQ(facts.asked.prefetch, 4);
  EXPECT_TRUE(facts.gpu);
}

TEST(ScriptWorkers, RowsThatDoNotFitAreRefused) {
  WorkersFacts facts;
  EXPECT_THROW(add_script(facts, {row(10, 1)}, {}), InputError);
  EXPECT_THROW(add_turns(facts, {row(0, 1)}), InputError);
  EXPECT_THROW(add_turns(facts, {row(10, -1)}), InputError);
}

}  // namespace
}  // namespace howmany::reports
