// Where runs of one number differ by more than good numbers do: what is measured again, and how
// often the answer is right all the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "reports/workers_advise.h"
#include "tests/reports/loader_examples.h"

namespace howmany {
namespace {

constexpr uint64_t kSeeds = 100;

WorkersPoint run_of(int workers, double rate) {
  WorkersPoint p;
  p.workers = workers;
  p.rate = example_metric(rate, 5);
  return p;
}

WorkersFacts facts_with(const std::map<int, double>& rates) {
  WorkersFacts facts = example_facts();
  for (const auto& [workers, rate] : rates) add_run(facts.points, run_of(workers, rate));
  return facts;
}

TEST(WorkersRuns, ArePooledIntoTheMedianWithAnIntervalOfTheRuns) {
  std::vector<WorkersPoint> points;
  add_run(points, run_of(2, 1000));
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(*points[0].rate.low, 995) << "one run has its own interval";
  add_run(points, run_of(2, 900));
  add_run(points, run_of(3, 700));
  add_run(points, run_of(2, 980));
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].runs, (std::vector<double>{1000, 900, 980}));
  EXPECT_EQ(points[0].rate.value, 980);
  EXPECT_EQ(points[0].rate.n, 3);
  EXPECT_LT(*points[0].rate.low, 900);
  EXPECT_GT(*points[0].rate.high, 1000);
}

TEST(WorkersRuns, ANumberThatFailsOnceHasFailed) {
  std::vector<WorkersPoint> points;
  add_run(points, run_of(2, 1000));
  WorkersPoint failed;
  failed.workers = 2;
  failed.error = "a worker died";
  add_run(points, failed);
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].error, "a worker died");
  EXPECT_EQ(points[0].rate.value, 1000);
}

size_t runs_of(const std::vector<int>& order, int workers) {
  return static_cast<size_t>(std::ranges::count(order, workers));
}

TEST(WorkersRuns, ContendersTakeTurnsUntilEachHasFive) {
  WorkersFacts facts = example_facts();
  const std::vector<int> order = measure_on({2, 2, false}, facts);
  EXPECT_EQ(runs_of(order, 1), 1u) << "half as fast: once is enough";
  std::map<int, size_t> runs;
  for (const int workers : order) {
    ++runs[workers];
    EXPECT_LE(runs[2], std::max<size_t>(2, runs[3] + 1));
    EXPECT_LE(runs[3], runs[2]);
  }
  EXPECT_EQ(runs[2], 5u);
  EXPECT_EQ(runs[3], 5u);
}

TEST(WorkersRuns, ANumberWithoutContendersIsNotRepeated) {
  WorkersFacts facts = facts_with({{1, 500}, {2, 1000}, {3, 800}});
  EXPECT_EQ(next_trial(facts), std::nullopt);
}

TEST(WorkersRuns, ANumberThatRanOnceContendsFromFurtherBelow) {
  WorkersFacts facts = facts_with({{1, 500}, {2, 1000}, {3, 880}});
  EXPECT_EQ(next_trial(facts), 2);
  add_run(facts.points, run_of(2, 1000));
  EXPECT_EQ(next_trial(facts), 3);
  add_run(facts.points, run_of(3, 880));
  EXPECT_EQ(next_trial(facts), std::nullopt) << "now it is told";
}

TEST(WorkersRuns, ADemandFarAwayDoesNotJumpBeyondTheCores) {
  WorkersFacts facts = example_facts(90000);
  EXPECT_LE(std::ranges::max(measure_on({2, 2, false}, facts)), 3);
  facts = example_facts(90000);
  EXPECT_LE(std::ranges::max(measure_on({8, 8, false}, facts)), 13) << "half more";
}

TEST(WorkersRuns, AContenderThatFallsBehindIsMeasuredNoMore) {
  WorkersFacts facts = facts_with({{1, 500}, {2, 1000}, {3, 1000}});
  EXPECT_EQ(next_trial(facts), 2);
  add_run(facts.points, run_of(2, 1000));
  EXPECT_EQ(next_trial(facts), 3);
  add_run(facts.points, run_of(3, 800));
  EXPECT_EQ(next_trial(facts), std::nullopt) << "900 of 1000";
}

TEST(WorkersRuns, FromNoWorkersTheSearchGoesToAsManyAsCores) {
  WorkersFacts facts = example_facts();
  add_run(facts.points, run_of(0, 500));
  EXPECT_EQ(next_trial(facts), 4);
  facts.probes.cores = 1;
  EXPECT_EQ(next_trial(facts), 2) << "one never tells whether more pay";
}

TEST(WorkersRuns, ADemandThatNothingMeetsIsAnsweredByTheBestOfManyRuns) {
  WorkersFacts facts = example_facts(9000);
  const std::vector<int> order = measure_on({2, 2, false}, facts);
  EXPECT_EQ(*advise_workers(facts).recommended, 2);
  EXPECT_EQ(runs_of(order, 2), 5u);
}

struct Shares {
  double near = 0, close = 0;  // within 2 and 4 % of the best
  double few = 0;              // one more than needed or less
  size_t most_runs = 0;
  int most_workers = 0;
};

Shares shares_of(const std::vector<Machine>& all, double sd) {
  Shares s;
  const double each = 1.0 / static_cast<double>(kSeeds * all.size());
  for (const Machine& machine : all)
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      WorkersFacts facts = example_facts();
      const std::vector<int> order = measure_on(machine, facts, sd, seed);
      const int chosen = *advise_workers(facts).recommended;
      s.near += each * (machine.rate(chosen) >= 0.98 * machine.best());
      s.close += each * (machine.rate(chosen) >= 0.96 * machine.best());
      s.few += each * (chosen <= machine.needed() + 1);
      s.most_runs = std::max(s.most_runs, order.size());
      s.most_workers = std::max(s.most_workers, std::ranges::max(order));
    }
  return s;
}

std::vector<Machine> those(double most_cores, bool soft) {
  std::vector<Machine> all = machines();
  std::erase_if(all, [&](const Machine& m) { return m.cores > most_cores || m.soft != soft; });
  return all;
}

// Standard deviations between runs: as of runs of 1.5 and of 0.4 s of one loader on two cores.
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

TEST(WorkersNoise, TheNumberOfRunsStaysBounded) {
  for (const double sd : {kLong, kShort, 0.3})
    EXPECT_LE(shares_of(machines(), sd).most_runs, 40u) << sd;
}

TEST(WorkersNoise, AFlatCurveIsNotClimbed) {
  WorkersFacts facts = example_facts();
  const std::vector<int> order = measure_on({1, 1, false}, facts);
  EXPECT_LE(std::ranges::max(order), 2);
  EXPECT_EQ(*advise_workers(facts).recommended, 0);
  EXPECT_LE(shares_of({{1, 1, false}}, kLong).most_workers, 4) << "nor with noise";
}

}  // namespace
}  // namespace howmany
