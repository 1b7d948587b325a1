// SPDX-License-Identifier: Apache-2.0
#include "reports/results/rounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reports/comm/examples.h"

namespace howmany::reports {
namespace {

Measurement timed_cell(double seconds) { return cell("all_reduce", "gloo", 4, seconds); }
Measurement untimed(const std::string& why) {
  Measurement m = timed_cell(0);
  m.metrics.clear();
  m.flags = {why};
  return m;
}

TEST(Rounds, BecomeTheirGeometricMeanWithItsInterval) {
  const auto table = over_rounds({{timed_cell(1)}, {timed_cell(8)}, {timed_cell(1)}});
  ASSERT_EQ(table.size(), 1u);
  const Metric& m = table[0].metrics.at("median_s");
  EXPECT_DOUBLE_EQ(m.value, 2);
  // Logarithms 0, 3 and 0 (base 2): t with two degrees of freedom is 4.303, times sqrt(2).
  EXPECT_NEAR(std::log2(*m.high), 1 + 4.3027 * std::sqrt(2.0), 1e-3);
  EXPECT_NEAR(std::log2(*m.low), 1 - 4.3027 * std::sqrt(2.0), 1e-3);
  EXPECT_EQ(m.n, 3);
  EXPECT_EQ(m.basis, "rounds");
}

TEST(Rounds, HaveAValueWithinItsOwnIntervalForTwoPointSamples) {
  for (const auto& [a, b] : {std::pair{1.0, 2.0}, {1.0, 1.01}, {0.0, 1.0}, {-1.0, 3.0}})
    for (int n = 2; n <= 20; ++n)
      for (int first = 0; first <= n; ++first) {
        std::vector<double> values(static_cast<size_t>(n), b);
        std::fill_n(values.begin(), first, a);
        const Metric m = metric_over_rounds(values, "s");
        EXPECT_LE(*m.low, m.value) << n << " values, " << first << " are " << a;
        EXPECT_GE(*m.high, m.value) << n << " values, " << first << " are " << a;
      }
}

TEST(Rounds, KeepEqualValuesExactly) {
  const Metric rank = metric_over_rounds({3, 3, 3}, "");
  EXPECT_EQ(rank.value, 3);
  EXPECT_EQ(rank.low, 3);
  EXPECT_FALSE(metric_over_rounds({3}, "").low);
}

TEST(Rounds, FailIfOneRoundFailed) {
  const auto table =
      over_rounds({{timed_cell(1)}, {untimed("failed: wrong data")}, {timed_cell(1)}});
  EXPECT_TRUE(has_failed(table.at(0)));
  EXPECT_TRUE(table.at(0).metrics.empty());
}

TEST(Rounds, SkipACellIfNoRoundHadTimeForIt) {
  const auto late = untimed("skipped: no time left");
  EXPECT_EQ(why_skipped(over_rounds({{late}, {late}}).at(0)), "no time left");
  const auto once = over_rounds({{late}, {timed_cell(3)}});
  EXPECT_EQ(why_skipped(once.at(0)), "");
  EXPECT_DOUBLE_EQ(value_of(once.at(0), "median_s"), 3);
}

TEST(Rounds, KeepCellsApartAndInOrder) {
  const Measurement other = cell("broadcast", "gloo", 4, 7);
  const auto table = over_rounds({{timed_cell(1), other}, {other}});
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].name, "all_reduce/gloo");
  EXPECT_EQ(table[1].metrics.at("median_s").n, 2);
}

TEST(Rounds, KeepEqualBucketsOfAModelApart) {
  const auto bucket = [](double seconds) { return cell("all_reduce", "gloo", 4, seconds, "mlp"); };
  const auto table = over_rounds({{bucket(1), bucket(3)}, {bucket(1), bucket(3)}});
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[1].metrics.at("median_s").n, 2);
  EXPECT_DOUBLE_EQ(value_of(table[1], "median_s"), 3);
}

}  // namespace
}  // namespace howmany::reports
