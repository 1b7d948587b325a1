// SPDX-License-Identifier: Apache-2.0
// Tests the search if noise between runs exceeds the differences between good numbers: repeated
// measurements, and the share of right answers.
// timeout: 900
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "reports/workers/advise.h"
#include "reports/workers/compare.h"
#include "reports/workers/points.h"
#include "reports/workers/search.h"
#include "tests/reports/workers/examples.h"

namespace howmany::reports {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr uint64_t kSeeds = 6;

WorkersPoint run_of(int workers, double rate) {
  WorkersPoint p;
  p.workers = workers;
  p.rate = example_metric(rate, 5);
  return p;
}

WorkersFacts facts_with(const std::map<int, double>& rates) {
  WorkersFacts facts = example_facts();
  for (const auto& [workers, rate] : rates) facts.points.push_back(run_of(workers, rate));
  return facts;
}

TEST(WorkersTurns, WhatAllOfARoundSufferedIsTakenOffEach) {
  WorkersFacts facts = facts_with({{2, 1000}, {3, 1100}, {9, 123}});
  add_rounds(facts, {{{2, 500}, {3, 550}}, {{2, 250}, {3, 275}}, {{2, 1000}, {3, 1100}}});
  for (const double run : facts.points[0].runs) EXPECT_NEAR(run, 500, 1e-6);
  for (const double run : facts.points[1].runs) EXPECT_NEAR(run, 550, 1e-6);
  EXPECT_NEAR(facts.points[1].rate.value, 550, 1e-6);
  EXPECT_EQ(facts.points[1].rate.n, 3);
  EXPECT_NEAR(facts.points[2].rate.value, 61.5, 1e-6) << "alone: at the speed that is now";
}

TEST(WorkersTurns, NumbersThatNeverMetAreComparedByOneThatBothDid) {
  WorkersFacts facts = facts_with({{2, 1}, {3, 1}, {4, 1}});
  add_rounds(facts, {{{2, 1000}, {3, 900}}, {{2, 2000}, {3, 1800}}});
  add_rounds(facts, {{{3, 90}, {4, 180}}, {{3, 45}, {4, 90}}});
  EXPECT_NEAR(facts.points[2].rate.value / facts.points[0].rate.value, 1.8, 1e-6);
}

TEST(WorkersTurns, OneStretchThatWasDisturbedChangesLittle) {
  WorkersFacts facts = facts_with({{2, 1}, {3, 1}, {4, 1}});
  std::vector<std::map<int, double>> rounds(9, {{2, 1000}, {3, 1100}, {4, 1050}});
  rounds[4][3] = 100;
  add_rounds(facts, rounds);
  EXPECT_NEAR(facts.points[1].rate.value / facts.points[0].rate.value, 1.1, 1e-6);
}

TEST(WorkersTurns, OfUnknownNumbersOrWithoutARateAreRefused) {
  WorkersFacts facts = facts_with({{2, 1}, {3, 1}});
  EXPECT_THROW(add_rounds(facts, {std::map<int, double>{}}), std::invalid_argument);
  EXPECT_THROW(add_rounds(facts, {{{5, 1}}}), std::invalid_argument);
  EXPECT_THROW(add_rounds(facts, {{{2, 0}}}), std::invalid_argument);
  EXPECT_THROW(add_rounds(facts, {{{2, std::nan("")}}}), std::invalid_argument);
  EXPECT_TRUE(facts.rounds.empty());
}

TEST(WorkersTurns, AreTakenByThoseThatMayBeTheBest) {
  WorkersFacts facts = facts_with({{1, 500}, {2, 1000}, {3, 850}, {4, 700}});
  EXPECT_THAT(next_trials(facts), ElementsAre(2, 3)) << "one run is not enough";
  add_rounds(facts, std::vector(10, std::map<int, double>{{2, 1000}, {3, 850}}));
  EXPECT_THAT(next_trials(facts), ElementsAre()) << "enough runs";
}

TEST(WorkersTurns, FewDoNotRuleANumberOut) {
  const std::map<int, double> round{{2, 1000}, {3, 930}};
  WorkersFacts facts = facts_with({{1, 500}, {2, 1000}, {3, 930}});
  add_rounds(facts, std::vector(9, round));
  EXPECT_THAT(next_trials(facts), ElementsAre(2, 3)) << "always alike, but of one start each";
  add_rounds(facts, {round});
  EXPECT_THAT(next_trials(facts), ElementsAre());
}

TEST(WorkersTurns, OfNumbersThatAreNewLeaveTimeToMakeSure) {
  WorkersFacts facts = facts_with({{2, 1000}, {3, 930}});
  EXPECT_DOUBLE_EQ(seconds_in_turn(facts, {2, 3}, 60), 6) << "a fifth, each its half";
  EXPECT_DOUBLE_EQ(seconds_in_turn(facts, {2, 3}, 8), 1.6) << "ten rounds and a start";
  EXPECT_DOUBLE_EQ(seconds_in_turn(facts, {2, 3}, 5), 2.5)
      << "the rest of the budget is not enough for more";
  facts.start_s = 1;
  EXPECT_DOUBLE_EQ(seconds_in_turn(facts, {2, 3}, 9), 2.2) << "a loader starts slowly";
  facts.start_s = 0.4;
  add_rounds(facts, std::vector(10, std::map<int, double>{{2, 1000}, {3, 930}}));
  EXPECT_DOUBLE_EQ(seconds_in_turn(facts, {2, 3}, 8), 4) << "now they are known";
  EXPECT_DOUBLE_EQ(seconds_in_turn(facts, {2, 4}, 8), 1.6) << "one is not";
  facts.wanted = {2, 4};
  EXPECT_DOUBLE_EQ(seconds_in_turn(facts, {2, 4}, 8), 4) << "nothing else is to be measured";
}

TEST(WorkersTurns, ANewNumberTakesThemWithTheBestSoFar) {
  WorkersFacts facts = facts_with({{2, 1000}});
  EXPECT_THAT(next_trials(facts), ElementsAre(2, 3));
  facts.bounds.push_back({"/dev/shm (PyTorch)", 4, true, "200 MB free"});
  EXPECT_THAT(next_trials(facts), ElementsAre(3)) << "not room for both";
}

TEST(WorkersTurns, GoOnUntilEachHasTwoHundred) {
  WorkersFacts facts = example_facts();
  const Order order = measure_on({2, 2, false}, facts);
  EXPECT_THAT(order, Contains(ElementsAre(2, 3)));
  for (const WorkersPoint& p : facts.points)
    EXPECT_GE(p.runs.size(), p.workers == 1 ? 50u : 200u) << p.workers;
  EXPECT_EQ(facts.points.back().workers, 1);
  EXPECT_EQ(facts.points.back().runs.size(), 50u) << "half as fast: decided early";
}

TEST(WorkersTurns, AreForAsManyAsThereIsRoomForAtOnce) {
  WorkersFacts facts = facts_with({{2, 1000}, {3, 990}, {4, 980}});
  facts.bounds = {{"/dev/shm (PyTorch)", 6, true, "200 MB free"}};
  EXPECT_THAT(next_trials(facts), ElementsAre(2, 3));
  facts.bounds[0].most = 4;
  EXPECT_THAT(next_trials(facts), Not(Contains(3)));
}

TEST(WorkersTurns, ADemandFarAwayDoesNotJumpBeyondTheCores) {
  WorkersFacts facts = example_facts(90000);
  EXPECT_LE(largest_of(measure_on({2, 2, false}, facts)), 3);
  facts = example_facts(90000);
  EXPECT_LE(largest_of(measure_on({8, 8, false}, facts)), 13) << "half more";
}

TEST(WorkersTurns, FromNoWorkersTheSearchGoesToAsManyAsCores) {
  WorkersFacts facts = facts_with({{0, 500}});
  EXPECT_THAT(next_trials(facts), ElementsAre(0, 4));
  facts.probes.cores = 1;
  EXPECT_THAT(next_trials(facts), ElementsAre(0, 2)) << "one point does not show whether more pay";
}

TEST(WorkersTurns, ADemandThatNothingMeetsIsAnsweredByTheBestOfManyRuns) {
  WorkersFacts facts = example_facts(9000);
  measure_on({2, 2, false}, facts);
  EXPECT_EQ(*advise_workers(facts).recommended, 2);
  EXPECT_GE(std::ranges::find(facts.points, 2, &WorkersPoint::workers)->runs.size(), 200u);
}

// Two numbers with equal busy cores, one of which was lucky. Samples wait for storage.
WorkersFacts facts_of_luck(double waiting_s, size_t rounds) {
  WorkersFacts facts = facts_with({{8, 1}, {12, 1}});
  facts.probes.waiting_s = waiting_s;
  add_rounds(facts, std::vector(rounds, WorkersFacts::Round{{8, 1000}, {12, 900}}),
             std::vector(rounds, WorkersFacts::Round{{8, 1.9}, {12, 1.9}}));
  return facts;
}

double compared_ratio(const WorkersFacts& facts) {
  return compared_rate(facts, facts.points[1]).value / compared_rate(facts, facts.points[0]).value;
}

TEST(WorkersCompare, ByBusyCoresWhereSamplesWaitForStorage) {
  EXPECT_NEAR(compared_ratio(facts_of_luck(2e-3, 12)), 1, 0.03);
  EXPECT_DOUBLE_EQ(compared_ratio(facts_of_luck(0, 12)), 0.9);
}

TEST(WorkersCompare, ByRatesWhereBusierCoresMakeNoMore) {
  WorkersFacts facts = facts_with({{8, 1}, {12, 1}});
  facts.probes.waiting_s = 2e-3;
  std::vector<WorkersFacts::Round> rounds(100);
  for (size_t r = 0; r < rounds.size(); ++r)
    for (const int workers : {8, 12}) rounds[r][workers] = 1000 * noise(1, workers, r, 0.06);
  add_rounds(facts, rounds, std::vector(100, WorkersFacts::Round{{8, 1}, {12, 1.5}}));
  EXPECT_NEAR(compared_ratio(facts), 1, 0.03);
}

// Many rounds at each of these numbers, with the given busy cores and rates.
template <typename Busy, typename Rate>
WorkersFacts facts_of_curve(const std::vector<int>& numbers, const Busy& busy, const Rate& rate) {
  WorkersFacts facts = example_facts();
  facts.probes.waiting_s = 2e-3;
  WorkersFacts::Round rates, cores;
  for (const int w : numbers) {
    facts.points.push_back(run_of(w, 1));
    rates[w] = rate(w), cores[w] = busy(w);
  }
  add_rounds(facts, std::vector(100, rates), std::vector(100, cores));
  return facts;
}

double idle_by_a_third(int workers) { return 2 - 2 * std::pow(2.0 / 3, workers); }

TEST(WorkersCompare, ACurveThroughBusyCoresTellsWhichNumberSufficesMeasuredOrNot) {
  const WorkersFacts facts = facts_of_curve({3, 6, 8, 16}, idle_by_a_third,
                                            [](int w) { return 500 * idle_by_a_third(w); });
  EXPECT_EQ(fewest_by_curve(facts, 20), 10);
  EXPECT_THAT(next_trials(facts), ElementsAre(9, 10, 11, 16));
  EXPECT_FALSE(fewest_by_curve(facts_of_curve({3, 6, 9}, idle_by_a_third, idle_by_a_third), 20))
      << "three numbers lie on one in any case";
}

TEST(WorkersCompare, NumbersThatLieOnNoCurveAreComparedOneByOne) {
  const auto busy = [](int w) { return w == 8 ? 1.6 : 1.9; };
  const WorkersFacts facts = facts_of_curve({4, 6, 8, 10, 12}, busy, busy);
  EXPECT_FALSE(fewest_by_curve(facts, 20));
  EXPECT_TRUE(told_by_cores(facts));
}

TEST(WorkersCompare, ManyNumbersTellThatWorkersGetInEachOthersWayNeverThatTheyHelp) {
  const auto ratio = [](double by_worker) {
    const WorkersFacts facts =
        facts_of_curve({4, 6, 8, 10, 12, 14, 16, 18}, idle_by_a_third,
                       [&](int w) { return 500 * idle_by_a_third(w) * std::exp(by_worker * w); });
    return compared_rate(facts, facts.points.back()).value /
           compared_rate(facts, facts.points[5]).value;
  };
  EXPECT_LT(ratio(-0.01), 0.99);
  EXPECT_NEAR(ratio(0), 1, 5e-3);
  EXPECT_NEAR(ratio(0.01), 1, 5e-3);
}

TEST(WorkersSearch, WhereSamplesWaitTheFirstNumbersAreMeasuredAtOnce) {
  WorkersFacts facts = example_facts();
  facts.bounds.clear();
  facts.probes.read_s = facts.probes.waiting_s = 8e-3;
  facts.probes.caller_s = facts.probes.sample_s = 10e-3;
  facts.probes.cores = 2;
  EXPECT_THAT(next_trials(facts), ElementsAre(10, 15, 22, 24));
  facts.bounds = {{"/dev/shm (PyTorch)", 26, true, "2 GB free"}};
  EXPECT_THAT(next_trials(facts), ElementsAre(10, 15)) << "as there is room";
  facts.wanted = {3};
  EXPECT_THAT(next_trials(facts), ElementsAre(3));
}

TEST(WorkersCompare, WhatDisturbsTheCoresOfARoundIsTakenOffEach) {
  WorkersFacts facts = facts_of_luck(2e-3, 12);
  add_rounds(facts, std::vector(5, WorkersFacts::Round{{12, 900}}),
             std::vector(5, WorkersFacts::Round{{8, 0.95}, {12, 0.95}}));
  for (const WorkersPoint& p : facts.points)
    for (const double busy : p.busy) EXPECT_NEAR(busy, 1.9, 1e-6) << p.workers;
}

TEST(WorkersCompare, AFailedNumberIsNone) {
  WorkersFacts facts = facts_of_luck(2e-3, 12);
  facts.points[0].error = "signal 9";
  EXPECT_EQ(compared_rate(facts, facts.points[0]).value, 0);
}

struct Shares {
  double near = 0, close = 0;  // shares of runs within 2 and 4 % of the best
  double few = 0;              // at most one more than needed
  size_t most_runs = 0;
  int most_workers = 0;
};

Shares shares_of(const std::vector<SimulatedMachine>& all, double sd) {
  Shares s;
  const double each = 1.0 / static_cast<double>(kSeeds * all.size());
  for (const SimulatedMachine& machine : all)
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      WorkersFacts facts = example_facts();
      const Order order = measure_on(machine, facts, sd, seed);
      const int chosen = *advise_workers(facts).recommended;
      s.near += each * (machine.rate(chosen) >= 0.98 * machine.best());
      s.close += each * (machine.rate(chosen) >= 0.96 * machine.best());
      s.few += each * (chosen <= machine.needed() + 1);
      s.most_runs = std::max(s.most_runs, order.size());
      s.most_workers = std::max(s.most_workers, largest_of(order));
    }
  return s;
}

std::vector<SimulatedMachine> those(double most_cores, bool soft) {
  std::vector<SimulatedMachine> all = machines();
  std::erase_if(all,
                [&](const SimulatedMachine& m) { return m.cores > most_cores || m.soft != soft; });
  return all;
}

// Standard deviations between runs of 1.5 s and 0.4 s of one loader, measured on two cores.
constexpr double kLong = 0.015, kShort = 0.03;

TEST(WorkersNoise, WhereTheCurveHasACornerTheChoiceIsNearTheBest) {
  EXPECT_GE(shares_of(those(16, false), kShort).near, 0.98);
  EXPECT_GE(shares_of(those(16, false), kLong).near, 0.98);
}

TEST(WorkersNoise, WhereTheCurveBendsTheChoiceIsWithin4PercentOfTheBest) {
  EXPECT_GE(shares_of(those(16, true), kShort).close, 0.95);
  EXPECT_GE(shares_of(those(4, true), kLong).close, 0.98);
  EXPECT_GE(shares_of(those(4, true), kShort).near, 0.87) << "and mostly within 2 %";
}

TEST(WorkersNoise, SeldomMoreThanOneWorkerTooMany) {
  EXPECT_GE(shares_of(those(4, false), kLong).few, 0.97);
  EXPECT_GE(shares_of(those(4, true), kLong).few, 0.95);
  EXPECT_GE(shares_of(those(4, false), kShort).few, 0.85);
  EXPECT_GE(shares_of(those(4, true), kShort).few, 0.85);
}

// Each sample waits for storage four times as long as its core time, on two cores.
Shares shares_of_waiting(double sd) {
  Shares s;
  const SimulatedMachine machine{.cores = 2, .ceiling = 2, .soft = true, .waits = 5};
  constexpr int kMany = 40;
  for (uint64_t seed = 1; seed <= kMany; ++seed) {
    WorkersFacts facts = example_facts();
    facts.bounds.clear();
    facts.probes.read_s = facts.probes.waiting_s = 8e-3;
    facts.probes.caller_s = facts.probes.sample_s = 10e-3;
    measure_on(machine, facts, sd, seed);
    const int chosen = *advise_workers(facts).recommended;
    s.near += (machine.rate(chosen) >= 0.98 * machine.best()) / double{kMany};
    s.close += (machine.rate(chosen) >= 0.96 * machine.best()) / double{kMany};
    s.few += (chosen <= machine.needed() + 1) / double{kMany};
  }
  return s;
}

TEST(WorkersNoise, WhereSamplesWaitForStorageTheBusyCoresTellHowManyWorkersDo) {
  const Shares told = shares_of_waiting(0.06);
  EXPECT_GE(told.close, 0.98);
  EXPECT_GE(told.near, 0.97);
  EXPECT_GE(told.few, 0.97);
}

TEST(WorkersNoise, TheNumberOfRunsStaysBounded) {
  for (const double sd : {kLong, kShort, 0.3})
    EXPECT_LE(shares_of(machines(), sd).most_runs, 40u) << sd;
}

TEST(WorkersNoise, AFlatCurveIsNotClimbed) {
  WorkersFacts facts = example_facts();
  EXPECT_LE(largest_of(measure_on({1, 1, false}, facts)), 2);
  EXPECT_EQ(*advise_workers(facts).recommended, 0);
  EXPECT_LE(shares_of({{1, 1, false}}, kLong).most_workers, 4) << "nor with noise";
}

}  // namespace
}  // namespace howmany::reports
