// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>

namespace howmany::reports {
namespace {

// Reference values: scipy 1.10.1, wilcoxon(mode="exact") and mannwhitneyu.
const std::vector<double> kPairs = {0.02,   0.029,  0.0118, -0.0067, 0.0064, -0.0097,
                                    0.0218, 0.0602, 0.0052, 0.0014,  0.0347, 0.0307};
const std::vector<double> kFrom = {1.0105, 0.907, 0.9971, 1.0695, 0.8656, 0.9542, 0.8099};
const std::vector<double> kTo = {1.021, 0.9658, 1.1265, 1.0233, 1.1771, 1.1657, 1.1313, 0.8983};
const std::vector<double> kTiedFrom = {9, 10, 10, 8, 10, 9, 9, 11, 9, 10, 11, 9, 10, 11, 10};
const std::vector<double> kTiedTo = {11, 12, 10, 11, 10, 11, 9, 10, 10, 11, 12, 9, 10, 11, 9};

std::vector<double> negated(std::vector<double> values) {
  for (double& value : values) value = -value;
  return values;
}

TEST(SignedRank, MatchesScipy) {
  EXPECT_NEAR(signed_rank_above(kPairs, 0), 0.008056640625, 1e-12);
  EXPECT_NEAR(signed_rank_above(kPairs, 0.01), 0.150634765625, 1e-12);
  EXPECT_NEAR(signed_rank_above(negated(kPairs), 0), 0.993896484375, 1e-12);
}

TEST(SignedRank, IsExactWithTies) {
  // Sizes 1 1 1 2: one of 16 sign patterns is all positive, p = 1/16. A negative 1 adds three
  // patterns.
  EXPECT_DOUBLE_EQ(signed_rank_above(std::vector<double>{1, 1, 1, 2}, 0), 1.0 / 16);
  EXPECT_DOUBLE_EQ(signed_rank_above(std::vector<double>{-1, 1, 1, 2}, 0), 4.0 / 16);
  EXPECT_DOUBLE_EQ(signed_rank_above(std::vector<double>{0, 0, 0}, 0), 1);
}

TEST(SignedRank, NormalApproximationJoinsTheExactTable) {
  std::mt19937_64 rng(3);
  std::normal_distribution<double> noise(0.3, 1);
  std::vector<double> values(64);
  for (double& value : values) value = noise(rng);
  const double exact = signed_rank_above(values, 0);
  values.push_back(1e-9);  // the smallest rank: 65 values, almost the same p
  EXPECT_NEAR(signed_rank_above(values, 0), exact, 0.15 * exact);
}

TEST(RankSum, MatchesScipy) {
  EXPECT_NEAR(rank_sum_above(kFrom, kTo, 0), 0.020046620046620046, 1e-12);
  const std::vector<double> same(6, 1.0);
  EXPECT_EQ(rank_sum_above(same, same, 0), 1);
}

TEST(RankSum, CorrectsTheNormalApproximationForTies) {
  EXPECT_NEAR(rank_sum_above(kTiedFrom, kTiedTo, 0), 0.04128751417481737, 1e-9);
}

TEST(RankSum, ComparesWithTheBound) {
  std::vector<double> moved = kTo;
  for (double& value : moved) value += 0.25;
  EXPECT_NEAR(rank_sum_above(kFrom, moved, 0.25), rank_sum_above(kFrom, kTo, 0), 1e-12);
}

TEST(Shift, IsTheMedianOfPairwiseAverages) {
  const Shift shift = paired_shift(kPairs);
  EXPECT_NEAR(shift.value, 0.015975, 1e-12);
  ASSERT_TRUE(shift.interval);
  EXPECT_NEAR(shift.interval->low, 0.0039, 1e-12);
  EXPECT_NEAR(shift.interval->high, 0.0307, 1e-12);
}

TEST(Shift, OfUnpairedSamplesIsTheMedianDifference) {
  const Shift shift = unpaired_shift(kFrom, kTo);
  EXPECT_NEAR(shift.value, 0.11855, 1e-12);
  ASSERT_TRUE(shift.interval);
  EXPECT_NEAR(shift.interval->low, 0.0105, 1e-12);
  EXPECT_NEAR(shift.interval->high, 0.2243, 1e-12);
}

TEST(Shift, HasNoIntervalIfSamplesAreTooFew) {
  EXPECT_FALSE(paired_shift(std::vector<double>{1, 2, 3, 4, 5}).interval);
  EXPECT_TRUE(paired_shift(std::vector<double>{1, 2, 3, 4, 5, 6}).interval);
  EXPECT_FALSE(unpaired_shift(std::vector<double>{1, 2, 3}, std::vector<double>{1, 2, 3}).interval);
  EXPECT_EQ(paired_shift(std::vector<double>{0.5}).value, 0.5);
}

// Pairwise values are counted, not listed. Both ways agree.
TEST(Shift, EqualsTheMedianOfListedPairs) {
  std::mt19937_64 rng(5);
  std::normal_distribution<double> noise(0, 1);
  std::vector<double> values(201);
  for (double& value : values) value = noise(rng);
  std::vector<double> averages;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i; j < values.size(); ++j) averages.push_back((values[i] + values[j]) / 2);
  }
  EXPECT_NEAR(paired_shift(values).value, median(averages), 1e-12);
  const std::vector<double> half(values.begin(), values.begin() + 80),
      rest(values.begin() + 80, values.end());
  std::vector<double> differences;
  for (const double a : half) {
    for (const double b : rest) differences.push_back(b - a);
  }
  EXPECT_NEAR(unpaired_shift(half, rest).value, median(differences), 1e-12);
  EXPECT_EQ(paired_shift(std::vector<double>(500, 0.0)).value, 0);
}

TEST(Shift, TakesAHundredThousandSamples) {
  std::vector<double> values(100'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  EXPECT_NEAR(paired_shift(values).value, 49999.5, 1e-6);
}

// Tests the coverage of intervals. Seeds are fixed, so the result is deterministic.
TEST(Shift, IntervalsContainTheTruthIn95Percent) {
  for (const int n : {10, 20, 45, 90}) {
    std::mt19937_64 rng(11);
    std::student_t_distribution<double> heavy(3);
    int covered = 0, covered_unpaired = 0;
    constexpr int kTrials = 2000;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> a(static_cast<size_t>(n)), b = a, d = a;
      for (size_t i = 0; i < a.size(); ++i) {
        a[i] = heavy(rng);
        b[i] = heavy(rng) + 0.5;
        d[i] = heavy(rng) + 0.5;
      }
      const Interval paired = paired_shift(d).interval.value();
      const Interval unpaired = unpaired_shift(a, b).interval.value();
      covered += paired.low <= 0.5 && 0.5 <= paired.high;
      covered_unpaired += unpaired.low <= 0.5 && 0.5 <= unpaired.high;
    }
    EXPECT_NEAR(covered, 0.955 * kTrials, 0.015 * kTrials) << n;
    EXPECT_NEAR(covered_unpaired, 0.955 * kTrials, 0.015 * kTrials) << n;
  }
}

TEST(SignedRank, RejectsATrueNullAtItsLevel) {
  std::mt19937_64 rng(13);
  std::normal_distribution<double> noise(0.01, 0.04);
  int rejected = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> d(20);
    for (double& value : d) value = noise(rng);
    rejected += signed_rank_above(d, 0.01) <= 0.05;
  }
  EXPECT_NEAR(rejected, 0.05 * kTrials, 0.01 * kTrials);
}

TEST(Holm, StepsDown) {
  const std::vector<double> adjusted = holm(std::vector<double>{0.01, 0.04, 0.03, 0.005});
  EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
  EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.06);
  EXPECT_TRUE(holm({}).empty());
  EXPECT_EQ(holm(std::vector<double>{0.9, 0.8})[0], 1);
}

TEST(Fewest, AreEnoughForTheTestToReject) {
  EXPECT_EQ(fewest_pairs(0.05, 1), 5);
  EXPECT_EQ(fewest_pairs(0.05, 50), 10);
  EXPECT_EQ(fewest_pairs(0.01, 200), 15);
  EXPECT_EQ(fewest_samples(0.05, 1), 3);  // 1 in 20
  EXPECT_LE(signed_rank_above(std::vector<double>{1, 2, 3, 4, 5}, 0), 0.05);
  EXPECT_GT(signed_rank_above(std::vector<double>{1, 2, 3, 4}, 0), 0.05);
}

TEST(Ranks, RefuseValuesThatAreNotFinite) {
  EXPECT_THROW(paired_shift({}), std::invalid_argument);
  EXPECT_THROW(signed_rank_above(std::vector<double>{1, std::nan("")}, 0), std::invalid_argument);
  EXPECT_THROW(rank_sum_above(std::vector<double>{1}, std::vector<double>{INFINITY}, 0),
               std::invalid_argument);
}

}  // namespace
}  // namespace howmany::reports
