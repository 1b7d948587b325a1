// SPDX-License-Identifier: Apache-2.0
// Tests the search if noise between turns exceeds the differences between good numbers: the share
// of right answers.
#include <gtest/gtest.h>

#include <algorithm>

#include "reports/workers/advise.h"
#include "tests/reports/workers/examples.h"

namespace howmany::reports {
namespace {

constexpr uint64_t kSeeds = 6;

struct Shares {
  double near = 0, close = 0;  // shares of runs within 2 and 5 % of the best
  double few = 0;              // at most one more than needed
};

Shares shares_of(const std::vector<SimulatedMachine>& all, double sd) {
  Shares s;
  const double each = 1.0 / static_cast<double>(kSeeds * all.size());
  for (const SimulatedMachine& machine : all)
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      WorkersFacts facts = example_facts();
      facts.bounds.clear();
      measure_on(machine, facts, sd, seed);
      const int chosen = *advise_workers(facts).recommended;
      s.near += each * (machine.rate(chosen) >= 0.98 * machine.best());
      s.close += each * (machine.rate(chosen) >= 0.95 * machine.best());
      s.few += each * (chosen <= machine.needed() + 1);
    }
  return s;
}

std::vector<SimulatedMachine> those(double most_cores, bool soft) {
  std::vector<SimulatedMachine> all = machines();
  std::erase_if(all,
                [&](const SimulatedMachine& m) { return m.cores > most_cores || m.soft != soft; });
  return all;
}

// Standard deviations between turns of 1.5 s and 0.4 s of one loader, measured on two cores.
constexpr double kLong = 0.015, kShort = 0.03;

TEST(WorkersNoise, WhereTheCurveHasACornerTheChoiceIsNearTheBest) {
  EXPECT_GE(shares_of(those(16, false), kShort).near, 0.95);
  EXPECT_GE(shares_of(those(16, false), kLong).near, 0.98);
}

TEST(WorkersNoise, WhereTheCurveBendsTheChoiceIsWithin5PercentOfTheBest) {
  EXPECT_GE(shares_of(those(16, true), kShort).close, 0.95);
  EXPECT_GE(shares_of(those(4, true), kLong).close, 0.98);
}

TEST(WorkersNoise, SeldomMoreThanOneWorkerTooMany) {
  EXPECT_GE(shares_of(those(4, false), kLong).few, 0.95);
  EXPECT_GE(shares_of(those(4, true), kLong).few, 0.95);
}

// Each sample waits for storage four times as long as its core time, on two cores.
TEST(WorkersNoise, WhereSamplesWaitForStorageTheChoiceIsWithin5Percent) {
  EXPECT_GE(shares_of({{.cores = 2, .ceiling = 2, .soft = true, .waits = 5}}, 0.06).close, 0.8);
}

TEST(WorkersNoise, AFlatCurveIsNotClimbed) {
  WorkersFacts facts = example_facts();
  measure_on({1, 1, false}, facts);
  EXPECT_EQ(*advise_workers(facts).recommended, 0);
  EXPECT_GE(shares_of({{1, 1, false}}, kLong).few, 0.99) << "nor with noise";
}

}  // namespace
}  // namespace howmany::reports
