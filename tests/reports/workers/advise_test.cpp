// SPDX-License-Identifier: Apache-2.0
// Tests the answer of `howmany workers` with synthetic measurements.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/reasons.h"
#include "core/base/text/json.h"
#include "reports/workers/advise.h"
#include "reports/workers/render.h"
#include "tests/reports/workers/examples.h"

namespace howmany::reports {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

// A number of workers that had a turn in every round, on a machine with `cores`.
void add_point(WorkersFacts& facts, int workers, double cores = 4) {
  for (int round = 0; round < kRounds; ++round)
    add_example_turn(facts, workers, round, 500 * std::min<double>(std::max(1, workers), cores));
}

TEST(WorkersSearch, SweepsDoubleUpToTheLimit) {
  WorkersFacts facts = example_facts();
  EXPECT_THAT(next_numbers(facts), ElementsAre(0, 1, 2, 4, 8));
  facts.bounds = {{"/dev/shm (PyTorch)", 6, true, ""}};
  EXPECT_THAT(next_numbers(facts), ElementsAre(0, 1, 2, 4, 6));
  facts.bounds[0].most = 0;
  EXPECT_THAT(next_numbers(facts), ElementsAre(0));
}

TEST(WorkersSearch, SweepsThenRefines) {
  WorkersFacts facts = example_facts();
  const Order order = search(facts, 3);
  EXPECT_THAT(order[0], ElementsAre(0, 1, 2, 4, 8)) << "twice the cores";
  EXPECT_THAT(order[1], IsSupersetOf({3, 4})) << "between the answer and the next smaller one";
}

TEST(WorkersSearch, ClimbsWhileTheLargestNumberIsTheAnswer) {
  WorkersFacts facts = example_facts();
  facts.cores = 1;  // there are six
  facts.bounds.clear();
  const Order order = search(facts, 6);
  EXPECT_THAT(order[0], ElementsAre(0, 1, 2));
  EXPECT_THAT(order[1], ElementsAre(2, 4, 8));
  EXPECT_EQ(*advise_workers(facts).recommended, 6);
}

TEST(WorkersSearch, SlowStorageNeedsMoreWorkersThanCores) {
  WorkersFacts facts = example_facts();
  facts.bounds.clear();
  measure_on({.cores = 4, .ceiling = 4, .soft = false, .waits = 5}, facts);
  EXPECT_EQ(*advise_workers(facts).recommended, 20);
}

TEST(WorkersSearch, FindsTheFewestThatFeed) {
  for (const double demand : {100.0, 700.0, 900.0, 1300.0, 1400.0}) {
    WorkersFacts facts = example_facts(demand);
    search(facts);
    EXPECT_EQ(*advise_workers(facts).recommended, static_cast<int>(std::ceil(demand / 500)));
  }
}

TEST(WorkersSearch, FindsTheKneeWithoutADemand) {
  for (const double cores : {1.0, 2.0, 3.0, 4.0}) {
    WorkersFacts facts = example_facts();
    search(facts, cores);
    EXPECT_EQ(*advise_workers(facts).recommended, cores == 1 ? 0 : static_cast<int>(cores))
        << cores;
  }
}

TEST(WorkersSearch, ADemandThatNothingMeetsIsAnsweredByTheFewestNearTheBest) {
  WorkersFacts facts = example_facts(5000);
  search(facts);
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_FALSE(advice.feeds);
  EXPECT_EQ(advice.reason, reason::kDemandNotMet);
  EXPECT_EQ(*advice.recommended, 4);
}

TEST(WorkersAdvice, SaysThatTheMachineWasNotIdle) {
  WorkersFacts facts = example_facts(900);
  add_point(facts, 1);
  EXPECT_THAT(advise_workers(facts).notes, Not(Contains(HasSubstr("not idle"))));
  facts.busy_elsewhere = 0.3;
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_THAT(advice.notes, Contains(HasSubstr("used up to 30 % of its cores")));
  EXPECT_FALSE(advice.certain);
  EXPECT_TRUE(advice.disturbed);
}

TEST(WorkersAdvice, WhatTheTimeDidNotDecideIsUncertain) {
  WorkersFacts facts = example_facts(900);
  add_point(facts, 1);
  facts.undecided = true;
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_FALSE(advice.certain);
  EXPECT_EQ(advice.reason, reason::kDemandNotMet);
  EXPECT_THAT(advice.notes, Contains(HasSubstr("the time budget was spent")));
}

TEST(WorkersSearch, NeverBeyondAHardBound) {
  for (const double demand : {0.0, 1900.0}) {
    WorkersFacts facts = example_facts(demand);
    facts.bounds.push_back({"/dev/shm (PyTorch)", 2, true, "64 MB free"});
    for (const auto& numbers : search(facts)) EXPECT_LE(std::ranges::max(numbers), 2);
  }
  WorkersFacts none = example_facts();
  none.bounds.push_back({"/dev/shm (PyTorch)", 0, true, "1 MB free"});
  for (const auto& numbers : search(none)) EXPECT_THAT(numbers, ElementsAre(0));
}

TEST(WorkersSearch, MeasuresWhatWasAskedForAndNothingElse) {
  for (const double demand : {0.0, 900.0}) {
    WorkersFacts facts = example_facts(demand);
    facts.wanted = {0, 3, 1};
    for (const auto& numbers : search(facts)) EXPECT_THAT(numbers, ElementsAre(0, 1, 3));
  }
}

TEST(WorkersSearch, WhatFailedHasNoMoreTurns) {
  WorkersFacts facts = example_facts();
  search(facts);
  point_at(facts.points, 4).error = "no more threads";
  EXPECT_THAT(next_numbers(facts), Not(Contains(4)));
  facts.wanted = {2, 4};
  EXPECT_THAT(next_numbers(facts), ElementsAre(2));
  for (WorkersPoint& point : facts.points) point.error = "no more threads";
  EXPECT_THAT(next_numbers(facts), ElementsAre());
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_FALSE(advice.recommended);
  EXPECT_EQ(advice.reason, reason::kNothingMeasured);
  EXPECT_THAT(advice.notes[0], HasSubstr("no more threads"));
  EXPECT_TRUE(advice.pytorch.empty());
}

TEST(WorkersSearch, IsNearTheBestOfAnExhaustiveSweep) {
  for (const SimulatedMachine& machine : machines()) {
    WorkersFacts facts = example_facts();
    measure_on(machine, facts);
    const int chosen = *advise_workers(facts).recommended;
    const auto what = ::testing::Message() << machine.cores << " cores, ceiling at "
                                           << machine.ceiling << (machine.soft ? ", soft" : "");
    EXPECT_GE(machine.rate(chosen), 0.96 * machine.best()) << what;  // 2 % below a measured best,
    EXPECT_LE(chosen, machine.needed() + 1) << what;                 // which is near the best
  }
}

TEST(WorkersSearch, FeedsWithTheFewestThatCan) {
  for (const SimulatedMachine& machine : machines())
    for (const double share : {0.3, 0.7, 0.95}) {
      const double demand = share * 500 * std::min(machine.cores, machine.ceiling);
      WorkersFacts facts = example_facts(demand);
      measure_on(machine, facts);
      const WorkersAdvice advice = advise_workers(facts);
      int needed = 1;
      while (needed < 64 && machine.rate(needed) < 0.99 * demand) ++needed;
      const auto what = ::testing::Message()
                        << machine.cores << " cores, ceiling at " << machine.ceiling
                        << (machine.soft ? ", soft, " : ", ") << demand << "/s";
      EXPECT_TRUE(advice.feeds) << what;
      EXPECT_LE(*advice.recommended, needed + 1) << what;
    }
}

TEST(WorkersAdvice, SaysWhatFeedsAndWhatOneFewerWouldCost) {
  WorkersFacts facts = example_facts(900);
  search(facts);
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_TRUE(advice.feeds);
  EXPECT_TRUE(advice.certain);
  EXPECT_EQ(advice.recommended, 2);
  EXPECT_EQ(advice.reason, reason::kFeedsDemand);
  EXPECT_THAT(advice.because, AllOf(HasSubstr("900 samples/s"), HasSubstr("0.0 %")));
  EXPECT_THAT(advice.notes, Contains(HasSubstr("With 1 worker training waits 44 %")));
}

TEST(WorkersAdvice, DevicesEachHaveTheirWorkers) {
  WorkersFacts facts = example_facts(400, 2);
  search(facts);
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_EQ(advice.reason, reason::kFeedsDemand);
  EXPECT_THAT(advice.because, HasSubstr("2 devices at 800"));
  EXPECT_EQ(advice.slurm, "#SBATCH --ntasks-per-node=2 --cpus-per-task=2");
}

TEST(WorkersAdvice, AStallThatMayBeTooLongIsUncertain) {
  WorkersFacts facts = example_facts(990);
  facts.points.clear();
  add_point(facts, 2);
  facts.points[0].stalls = {0, 0.03, 0, 0.02, 0.009, 0.01, 0, 0.009, 0};
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_TRUE(advice.feeds);
  EXPECT_FALSE(advice.certain);
  EXPECT_THAT(advice.notes, Contains(HasSubstr("interval of the stall reaches")));
}

// Rates of 2 and 4 workers in rounds of which the machine's speed differs by a factor of 2.
WorkersPoints in_rounds(double gain, double noise, int rounds) {
  WorkersPoints points;
  for (int round = 0; round < rounds; ++round) {
    const double speed = round % 3 == 0 ? 500 : 1000;
    point_at(points, 2).rates[round] = speed;
    point_at(points, 4).rates[round] = speed * gain * (round % 2 == 0 ? 1 + noise : 1 - noise);
  }
  return points;
}

TEST(WorkersCompare, RoundsDecideNotTheSpeedOfTheMachine) {
  const WorkersPoints points = in_rounds(1.1, 0, 10);
  EXPECT_NEAR(gain(points, points[1], points[0]).value, 1.1, 1e-9);
  EXPECT_EQ(best_of(points)->workers, 4);
  EXPECT_EQ(fewest_near(points, points[1]).workers, 4);
}

TEST(WorkersCompare, MoreWorkersMustBeShownToPay) {
  WorkersPoints points = in_rounds(1.025, 0.1, 10);
  EXPECT_EQ(fewest_near(points, points[1]).workers, 2) << "not shown by these rounds";
  points = in_rounds(1.03, 0.001, 10);
  EXPECT_EQ(fewest_near(points, points[1]).workers, 4) << "shown";
  points = in_rounds(1.1, 0, 1);
  EXPECT_EQ(fewest_near(points, points[1]).workers, 2) << "one round";
  points = in_rounds(1.3, 0, 1);
  EXPECT_EQ(fewest_near(points, points[1]).workers, 4) << "a clear round";
}

TEST(WorkersCompare, NumbersThatNeverMetAreLinkedByOneThatMetBoth) {
  WorkersPoints points;
  point_at(points, 2).rates = {{0, 1000}, {1, 2000}};
  point_at(points, 3).rates = {{0, 900}, {1, 1800}, {2, 90}, {3, 45}};
  point_at(points, 4).rates = {{2, 180}, {3, 90}};
  EXPECT_NEAR(gain(points, points[2], points[0]).value, 1.8, 1e-9);
  point_at(points, 9).rates = {{7, std::sqrt(2e6)}};
  const Estimate alone = gain(points, points[3], points[0]);
  EXPECT_NEAR(alone.value, 1, 1e-9) << "of geometric means";
  EXPECT_FALSE(alone.interval);
}

TEST(WorkersCompare, AFailedNumberIsNone) {
  WorkersPoints points = in_rounds(1.5, 0, 3);
  points[1].error = "signal 9";
  EXPECT_EQ(best_of(points)->workers, 2);
  points[0].error = "signal 9";
  EXPECT_EQ(best_of(points), nullptr);
  EXPECT_EQ(best_of({}), nullptr);
}

TEST(WorkersPoints, AreInOrderAndKnowTheNextRound) {
  WorkersPoints points;
  for (const int workers : {4, 0, 2, 4}) point_at(points, workers);
  EXPECT_EQ(points.size(), 3u);
  EXPECT_EQ(points[1].workers, 2);
  EXPECT_EQ(next_round(points), 0);
  points[1].rates[5] = 1;
  EXPECT_EQ(next_round(points), 6);
  EXPECT_TRUE(std::isnan(rate_of(points[0]).value));
  EXPECT_TRUE(std::isnan(stall_of(points[0]).value));
}

TEST(WorkersAdvice, ANumberThatMayBeMuchFasterLeavesDoubt) {
  WorkersFacts facts = example_facts();
  for (const int workers : {3, 4, 5}) add_point(facts, workers);
  EXPECT_TRUE(advise_workers(facts).certain);
  for (int round = 0; round < kRounds; ++round)
    facts.points[2].rates[round] = round % 2 == 0 ? 1500 : 2600;
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_EQ(*advice.recommended, 4);
  EXPECT_FALSE(advice.certain);
  facts.points[2].rates = {{0, 2000}};
  EXPECT_FALSE(advise_workers(facts).certain) << "one turn has no interval";
}

TEST(WorkersAdvice, WithNothingLargerMeasuredIsUncertain) {
  WorkersFacts facts = example_facts();
  facts.points.clear();
  add_point(facts, 0);
  add_point(facts, 2);
  const WorkersAdvice advice = advise_workers(facts);
  EXPECT_FALSE(advice.certain);
  EXPECT_THAT(advice.notes,
              Contains(HasSubstr("Uncertain: more than 2 workers were not measured")));
}

TEST(WorkersAdvice, TheLineToPasteHasNoPrefetchWithoutWorkers) {
  WorkersFacts facts = example_facts();
  facts.points.clear();
  add_point(facts, 0, 1);
  add_point(facts, 1, 1);
  EXPECT_THAT(advise_workers(facts).pytorch,
              HasSubstr("DataLoader(dataset, batch_size=64, num_workers=0, pin_memory=True)"));
  facts.points.clear();
  add_point(facts, 0);
  add_point(facts, 2);
  EXPECT_THAT(advise_workers(facts).pytorch,
              HasSubstr("DataLoader(dataset, batch_size=64, num_workers=2, prefetch_factor=2, "
                        "persistent_workers=True, pin_memory=True)"));
}

TEST(WorkersAdvice, SaysWhatForbidsMoreThanTheCoresCouldUse) {
  WorkersFacts facts = example_facts(900);
  search(facts);
  EXPECT_THAT(advise_workers(facts).notes, Not(Contains(HasSubstr("No more than"))));
  facts.bounds.push_back({"/dev/shm (PyTorch)", 2, true, "64 MB free"});
  EXPECT_THAT(advise_workers(facts).notes,
              Contains("No more than 2 workers by /dev/shm (PyTorch): 64 MB free."));
}

TEST(WorkersAdvice, SaysThatThreadsAreNotPyTorch) {
  WorkersFacts facts = example_facts(900);
  search(facts);
  EXPECT_THAT(advise_workers(facts).notes, Contains(HasSubstr("--worker-type pytorch")));
}

std::string rendered(const WorkersFacts& facts) {
  const auto json = to_json(facts, advise_workers(facts));
  return render_workers(nlohmann::json::parse(dump_json(json)), "s", false);
}

TEST(WorkersAnswer, TheTextIsMadeOfTheJson) {
  WorkersFacts facts = example_facts();
  search(facts);
  const std::string text = rendered(facts);
  for (const char* part : {"num_workers=4", "<-", "workers  runs  samples/s", "/dev/shm (PyTorch)"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(WorkersAnswer, NothingIsNaN) {
  WorkersFacts facts = example_facts(900);
  facts.points.clear();
  add_point(facts, 1);
  facts.points[0].rates.clear();
  const auto json = to_json(facts, advise_workers(facts));
  EXPECT_TRUE(json["table"][0]["samples_per_s"].is_null());
  EXPECT_NO_THROW(rendered(facts));
}

TEST(WorkersAnswer, AnotherAnswerIsRefusedNotRendered) {
  for (const char* text :
       {"{}", "[]", "3", R"({"because": 1})",
        R"({"because": "x", "pytorch": "", "slurm": "", "notes": [], "table": 1})"})
    EXPECT_THROW(render_workers(nlohmann::json::parse(text), "s", false), InputError) << text;
}

}  // namespace
}  // namespace howmany::reports
