// SPDX-License-Identifier: Apache-2.0
#include "core/base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace howmany {
namespace {

std::vector<double> one_to(int n) {
  std::vector<double> values;
  for (int i = n; i >= 1; --i) values.push_back(i);
  return values;
}

// Reference values: R's quantile(type = 7), qbinom, qt.
TEST(Statistics, QuantilesInterpolateLikeTypeSeven) {
  EXPECT_DOUBLE_EQ(median(one_to(4)), 2.5);
  EXPECT_DOUBLE_EQ(median(one_to(5)), 3);
  EXPECT_DOUBLE_EQ(quantile(one_to(10), 0.95), 9.55);
  EXPECT_DOUBLE_EQ(quantile(one_to(10), 0), 1);
  EXPECT_DOUBLE_EQ(quantile(one_to(10), 1), 10);
  EXPECT_DOUBLE_EQ(quantile(one_to(1), 0.3), 1);
}

TEST(Statistics, StudentTMatchesTheTable) {
  EXPECT_NEAR(student_t(1), 12.7062, 1e-4);
  EXPECT_NEAR(student_t(2), 4.30265, 1e-5);
  EXPECT_NEAR(student_t(30), 2.04227, 1e-5);
}

TEST(Statistics, MedianIntervalTakesTheTabledOrderStatistics) {
  EXPECT_FALSE(median_interval(one_to(5)).has_value());
  EXPECT_EQ(median_interval(one_to(6))->low, 1);  // 6: the whole range, 96.9 %
  EXPECT_EQ(median_interval(one_to(6))->high, 6);
  EXPECT_EQ(median_interval(one_to(20))->low, 6);
  EXPECT_EQ(median_interval(one_to(20))->high, 15);
  EXPECT_EQ(median_interval(one_to(100))->low, 40);
  EXPECT_EQ(median_interval(one_to(100))->high, 61);
}

TEST(Statistics, MeanIntervalIsStudents) {
  const auto interval = mean_interval(std::vector<double>{1, 2, 3});
  ASSERT_TRUE(interval.has_value());
  EXPECT_NEAR(interval->low, 2 - 4.302653 / std::sqrt(3), 1e-5);
  EXPECT_NEAR(interval->high, 2 + 4.302653 / std::sqrt(3), 1e-5);
  EXPECT_FALSE(mean_interval(std::vector<double>{1}).has_value());
}

TEST(Statistics, SpreadIsRelative) {
  EXPECT_NEAR(coefficient_of_variation(std::vector<double>{9, 10, 11}), 0.1, 1e-12);
  EXPECT_EQ(coefficient_of_variation(std::vector<double>{9}), 0);
}

TEST(Statistics, RatioIntervalHoldsAllRatios) {
  const Interval ratio = ratio_interval({2, 3}, {4, 5});
  EXPECT_DOUBLE_EQ(ratio.low, 2.0 / 5);
  EXPECT_DOUBLE_EQ(ratio.high, 3.0 / 4);
  EXPECT_THROW(ratio_interval({0, 3}, {4, 5}), std::invalid_argument);
}

TEST(Statistics, RefuseWhatIsNoSample) {
  EXPECT_THROW(median({}), std::invalid_argument);
  EXPECT_THROW(median(std::vector<double>{1, std::nan("")}), std::invalid_argument);
  EXPECT_THROW(quantile(one_to(3), 1.5), std::invalid_argument);
  EXPECT_THROW(student_t(0), std::invalid_argument);
}

// Coverage of both intervals for skewed data, from 2000 samples with a fixed seed. The coverage is
// within 5 standard errors of the nominal one, or above it for the distribution-free interval.
TEST(Statistics, IntervalsCoverAsOftenAsTheyPromise) {
  constexpr int kTrials = 2000;
  std::mt19937_64 rng(7);
  std::lognormal_distribution<double> skewed(0, 1);
  std::normal_distribution<double> normal(5, 1);
  int of_median = 0, of_mean = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> a, b;
    for (int i = 0; i < 25; ++i) a.push_back(skewed(rng));
    for (int i = 0; i < 3; ++i) b.push_back(normal(rng));
    const auto m = median_interval(a), t = mean_interval(b);
    of_median += m->low <= 1 && 1 <= m->high;  // the median of this lognormal is 1
    of_mean += t->low <= 5 && 5 <= t->high;
  }
  const double five_errors = 5 * std::sqrt(0.95 * 0.05 / kTrials);
  EXPECT_GE(of_median, (0.95 - five_errors) * kTrials);
  EXPECT_NEAR(of_mean / static_cast<double>(kTrials), 0.95, five_errors);
}

TEST(Statistics, RepeatIntervalsHoldTheNextMeanAsOftenAsTheyPromise) {
  constexpr int kTrials = 2000;
  std::mt19937_64 rng(11);
  std::normal_distribution<double> logarithm(0, 0.3), negative(-5, 1);
  const auto three = [&](auto& of) { return std::vector{of(rng), of(rng), of(rng)}; };
  int of_logarithms = 0, of_values = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> a = three(logarithm);
    for (double& x : a) x = std::exp(x);
    const auto i = repeat_interval(a), j = repeat_interval(three(negative));
    const double next = std::exp(mean(three(logarithm))), other = mean(three(negative));
    of_logarithms += i->low <= next && next <= i->high;
    of_values += j->low <= other && other <= j->high;
  }
  const double five_errors = 5 * std::sqrt(0.95 * 0.05 / kTrials);
  EXPECT_NEAR(of_logarithms / static_cast<double>(kTrials), 0.95, five_errors);
  EXPECT_NEAR(of_values / static_cast<double>(kTrials), 0.95, five_errors);
}

}  // namespace
}  // namespace howmany
