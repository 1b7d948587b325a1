// SPDX-License-Identifier: Apache-2.0
#include "reports/results/efficiency.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace howmany::reports {
namespace {

Rounds rounds_of(const std::vector<double>& medians, int iterations = 20) {
  Rounds rounds;
  for (size_t i = 0; i < medians.size(); ++i) {
    rounds[static_cast<int>(i)] = std::vector<double>(static_cast<size_t>(iterations), medians[i]);
  }
  return rounds;
}

TEST(Efficiency, WeakMultipliesByTheDevicesAndStrongDoesNot) {
  const Rounds single = rounds_of({1, 1, 1}), two = rounds_of({1.25, 1.25, 1.25});
  EXPECT_DOUBLE_EQ(speedup(single, two, 2).value, 1.6);
  EXPECT_DOUBLE_EQ(speedup(single, two, 1).value, 0.8);
}

TEST(Efficiency, ADriftCommonToARoundCancels) {
  const Estimate ratio = time_ratio(rounds_of({1, 2, 4}), rounds_of({2, 4, 8}));
  EXPECT_DOUBLE_EQ(ratio.value, 0.5);
  EXPECT_NEAR(ratio.interval->low, 0.5, 1e-12);
  EXPECT_NEAR(ratio.interval->high, 0.5, 1e-12);
  EXPECT_EQ(ratio.basis, "rounds");
  EXPECT_EQ(ratio.n, 3);
}

TEST(Efficiency, ThreeRoundsGiveStudentsIntervalOfTheLogs) {
  const Estimate ratio = time_ratio(rounds_of({1.0, 1.1, 1.2}), rounds_of({1, 1, 1}));
  const double logs[] = {0, std::log(1.1), std::log(1.2)};
  const double middle = (logs[0] + logs[1] + logs[2]) / 3;
  double squares = 0;
  for (const double x : logs) squares += (x - middle) * (x - middle);
  const double half = 4.302653 * std::sqrt(squares / 2) / std::sqrt(3);
  EXPECT_NEAR(ratio.value, std::exp(middle), 1e-12);
  EXPECT_NEAR(ratio.interval->low, std::exp(middle - half), 1e-6);
  EXPECT_NEAR(ratio.interval->high, std::exp(middle + half), 1e-6);
}

TEST(Efficiency, FewerRoundsFallBackToTheWidestWithinRunInterval) {
  Rounds base = rounds_of({1, 1});
  Rounds other = rounds_of({2, 2});
  other[1] = {};
  for (int i = 0; i < 20; ++i) other[1].push_back(1.9 + 0.01 * i);  // 6th 1.95, 15th 2.04
  const Estimate ratio = time_ratio(base, other);
  EXPECT_EQ(ratio.basis, "iterations");
  EXPECT_EQ(ratio.n, 40);
  EXPECT_NEAR(ratio.interval->low, 1 / 2.04, 1e-9);
  EXPECT_NEAR(ratio.interval->high, 1 / 1.95, 1e-9);
}

TEST(Efficiency, HasNoIntervalWhereThereIsTooLittle) {
  EXPECT_FALSE(time_ratio(rounds_of({1}, 5), rounds_of({1}, 5)).interval.has_value());
  EXPECT_FALSE(step_time(rounds_of({1}, 5)).interval.has_value());
  EXPECT_TRUE(step_time(rounds_of({1}, 6)).interval.has_value());
}

TEST(Efficiency, ValueLiesInItsIntervalForAllTwoPointSamples) {
  for (int n = 1; n <= 20; ++n)
    for (int slow = 0; slow <= n; ++slow) {
      std::vector<double> medians(static_cast<size_t>(n), 1.0);
      std::fill_n(medians.begin(), slow, 2.0);
      const std::vector<double> ones(static_cast<size_t>(n), 1.0);
      for (const Estimate& e :
           {step_time(rounds_of(medians)), time_ratio(rounds_of(medians), rounds_of(ones))}) {
        ASSERT_TRUE(e.interval.has_value());
        EXPECT_LE(e.interval->low, e.value) << slow << " of " << n;
        EXPECT_GE(e.interval->high, e.value) << slow << " of " << n;
      }
    }
}

TEST(Efficiency, UsesOnlyRoundsThatHaveBothSides) {
  Rounds base = rounds_of({1, 1, 1, 9});
  Rounds other = rounds_of({2, 2, 2});
  EXPECT_DOUBLE_EQ(time_ratio(base, other).value, 0.5);
  EXPECT_EQ(time_ratio(base, other).n, 3);
  EXPECT_THROW(time_ratio({{0, {1.0}}}, {{1, {1.0}}}), std::invalid_argument);
}

TEST(Efficiency, TellsHowManyRoundsWouldDecide) {
  // The spread of the logarithms is chosen so that n rounds give a half width of 0.1.
  const double spread = 0.1 * std::sqrt(3) / student_t(2);
  const Estimate near{0.85, Interval{0.85 * std::exp(-0.1), 0.85 * std::exp(0.1)}, 3, "rounds"};
  const int rounds = rounds_to_decide(near, 0.8).value();
  const double gap = std::log(0.85 / 0.8);
  EXPECT_LT(student_t(rounds - 1) * spread / std::sqrt(rounds), gap);
  EXPECT_GE(student_t(rounds - 2) * spread / std::sqrt(rounds - 1), gap);
  EXPECT_FALSE(rounds_to_decide(near, 0.5).has_value());
  Estimate exactly = near;
  exactly.value = 0.8;
  EXPECT_FALSE(rounds_to_decide(exactly, 0.8).has_value());
}

// The interval of an efficiency has its nominal coverage, even with variation between processes
// that the iterations of a run do not show.
TEST(Efficiency, IntervalCoversTheTruthWithNoiseBetweenRuns) {
  constexpr int kTrials = 1000;
  std::mt19937_64 rng(11);
  std::normal_distribution<double> between(0, 0.03), within(0, 0.005);
  auto measure = [&](double truth) {
    Rounds rounds;
    for (int round = 0; round < 3; ++round) {
      const double level = truth * std::exp(between(rng));
      for (int i = 0; i < 10; ++i) rounds[round].push_back(level * std::exp(within(rng)));
    }
    return rounds;
  };
  int covered = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Estimate e = time_ratio(measure(1), measure(1.25));
    covered += e.interval->low <= 0.8 && 0.8 <= e.interval->high;
  }
  EXPECT_NEAR(covered / static_cast<double>(kTrials), 0.95, 5 * std::sqrt(0.95 * 0.05 / kTrials));
}

}  // namespace
}  // namespace howmany::reports
