// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/crossing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/statistics.h"

namespace howmany::reports {
namespace {

constexpr double kGlooLatency = 10e-6, kGlooPerByte = 2e-9;
constexpr double kLocalLatency = 30e-6, kLocalPerByte = 0.5e-9;
constexpr double kTruth = 20e-6 / 1.5e-9;  // bytes at which both take the same time

CurvePoint point(double bytes, double seconds, double factor) {
  return {bytes, seconds, Interval{seconds / factor, seconds * factor}};
}

Curve line(double latency, double per_byte, double factor = 1.01) {
  Curve curve;
  for (double bytes = 4; bytes <= 64 << 20; bytes *= 4)
    curve.push_back(point(bytes, latency + per_byte * bytes, factor));
  return curve;
}

Crossing gloo_and_local(double factor) {
  return crossing_of({{"gloo", line(kGlooLatency, kGlooPerByte, factor)},
                      {"local", line(kLocalLatency, kLocalPerByte, factor)}})
      .value();
}

TEST(Crossing, IsWhereTheCurvesCross) {
  const Crossing crossing = gloo_and_local(1.01);
  EXPECT_TRUE(crossing.certain);
  EXPECT_EQ(crossing.below, "gloo");
  EXPECT_EQ(crossing.above, "local");
  EXPECT_NEAR(std::log2(crossing.bytes / kTruth), 0, 0.5);
  EXPECT_EQ(crossing.interval->low, 4096);
  EXPECT_EQ(crossing.interval->high, 16384);
  EXPECT_EQ(in_words(crossing), "gloo below 12.7 KiB (4 KiB to 16 KiB), local above");
}

TEST(Crossing, HasAWiderIntervalIfTimesAreLessSure) {
  const Crossing crossing = gloo_and_local(1.4);
  EXPECT_EQ(crossing.interval->low, 1024);
  EXPECT_EQ(crossing.interval->high, 65536);
}

TEST(Crossing, IsUncertainIfNoSizeIsSurelyFaster) {
  const Crossing crossing = gloo_and_local(3);
  EXPECT_TRUE(crossing.crosses());
  EXPECT_FALSE(crossing.certain);
  EXPECT_FALSE(crossing.interval);
  EXPECT_GT(crossing.bytes, 0);
}

TEST(Crossing, IsAbsentIfOneBackendIsFastestAtBothEnds) {
  const Crossing crossing =
      crossing_of({{"local", line(1e-6, 1e-9)}, {"mpi", line(2e-6, 2e-9)}}).value();
  EXPECT_FALSE(crossing.crosses());
  EXPECT_TRUE(crossing.certain);
  const Crossing unsure =
      crossing_of({{"local", line(1e-6, 1e-9, 2)}, {"mpi", line(2e-6, 2e-9, 2)}}).value();
  EXPECT_FALSE(unsure.certain);
}

TEST(Crossing, UsesOnlyCommonSizes) {
  EXPECT_FALSE(crossing_of({}));
  EXPECT_FALSE(crossing_of({{"a", {point(4, 1, 1.1)}}, {"b", {point(8, 1, 1.1)}}}));
  const Crossing crossing = crossing_of({{"a", {point(4, 1, 1.1), point(8, 9, 1.1)}},
                                         {"b", {point(4, 2, 1.1), point(16, 1, 1.1)}}})
                                .value();
  EXPECT_EQ(crossing.to, 4);
  EXPECT_FALSE(crossing.crosses());
}

TEST(Crossing, HandlesEqualTimes) {
  for (const auto& [first, second] : {std::pair{1.0, 1.0}, {2.0, 1.0}, {1.0, 2.0}}) {
    const auto crossing = crossing_of({{"a", {{4, first}, {8, 1}}}, {"b", {{4, 1}, {8, second}}}});
    EXPECT_TRUE(std::isfinite(crossing.value().bytes));
    EXPECT_FALSE(crossing->certain && crossing->crosses());
  }
}

// Simulated runs of five rounds, each a time with a noise of 10 %.
TEST(Crossing, IntervalContainsTheTruthInMostRuns) {
  std::mt19937 engine(1);
  std::normal_distribution<double> noise(0, 0.1);
  const auto measured = [&](double latency, double per_byte) {
    Curve curve;
    for (double bytes = 4; bytes <= 64 << 20; bytes *= 4) {
      std::vector<double> rounds(5);
      for (double& s : rounds) s = (latency + per_byte * bytes) * std::exp(noise(engine));
      curve.push_back({bytes, median(rounds), repeat_interval(rounds)});
    }
    return curve;
  };
  int contained = 0;
  constexpr int kRuns = 400;
  for (int run = 0; run < kRuns; ++run) {
    const Crossing crossing = crossing_of({{"gloo", measured(kGlooLatency, kGlooPerByte)},
                                           {"local", measured(kLocalLatency, kLocalPerByte)}})
                                  .value();
    if (!crossing.interval) continue;
    contained += crossing.interval->low <= kTruth && kTruth <= crossing.interval->high;
  }
  EXPECT_GE(contained, 0.95 * kRuns);
}

}  // namespace
}  // namespace howmany::reports
