// SPDX-License-Identifier: Apache-2.0
#include "reports/results/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>

namespace howmany::reports {
namespace {

constexpr double kMost = 64 << 20;
constexpr double kLatency = 20e-6, kPerByte = 1e-9;

Curve curve_by(double factor, double noise = 0, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  Curve curve;
  for (double bytes = 4; bytes <= kMost; bytes *= factor)
    curve.push_back({bytes, (kLatency + kPerByte * bytes) * std::exp(noise * normal(engine))});
  return curve;
}

TEST(AlphaBeta, FindsLatencyAndBandwidth) {
  const AlphaBeta fit = fit_alpha_beta(curve_by(4));
  EXPECT_NEAR(fit.latency, kLatency, 1e-9);
  EXPECT_NEAR(fit.bytes_per_s(), 1 / kPerByte, 1e5);
  EXPECT_EQ(fit.sizes, 13);
  EXPECT_LT(*fit.error, 1e-6);
}

TEST(AlphaBeta, WeighsSizesEqually) {
  // If it minimized the absolute error, the largest size would determine the latency.
  Curve curve = curve_by(4);
  curve.back().seconds *= 1.1;
  EXPECT_NEAR(fit_alpha_beta(curve).predict(4), kLatency, 1e-6);
}

TEST(AlphaBeta, ReportsTheNoiseAsItsError) {
  double squares = 0;
  constexpr int kRuns = 50;
  for (unsigned seed = 0; seed < kRuns; ++seed)
    squares += std::pow(*fit_alpha_beta(curve_by(4, 0.1, seed)).error, 2) / kRuns;
  EXPECT_NEAR(std::sqrt(squares), 0.1, 0.02);
}

TEST(AlphaBeta, HasNoErrorWithTwoSizes) {
  const AlphaBeta fit = fit_alpha_beta({{4, 2e-6}, {1004, 3e-6}});
  EXPECT_FALSE(fit.error);
  EXPECT_NEAR(fit.bytes_per_s(), 1e9, 1);
}

TEST(AlphaBeta, HasNoBandwidthIfTimesFall) {
  const AlphaBeta fit = fit_alpha_beta({{4, 3e-6}, {1004, 2e-6}, {2004, 1e-6}});
  EXPECT_TRUE(std::isinf(fit.bytes_per_s()));
  EXPECT_GT(fit.latency, 1e-6);
}

TEST(AlphaBeta, HasNoLatencyIfTheLineStartsBelowZero) {
  const AlphaBeta fit = fit_alpha_beta({{1000, 1e-6}, {2000, 4e-6}, {3000, 7e-6}});
  EXPECT_EQ(fit.latency, 0);
  EXPECT_GT(fit.seconds_per_byte, 0);
}

TEST(AlphaBeta, RejectsTimesThatAreNotAboveZero) {
  EXPECT_THROW(fit_alpha_beta({}), std::invalid_argument);
  EXPECT_THROW(fit_alpha_beta({{4, 0}}), std::invalid_argument);
  EXPECT_NEAR(fit_alpha_beta({{4, 1e-6}}).predict(1000), 1e-6, 1e-12);
}

TEST(LatencyBelow, IsTheSizeOfTwiceTheLatency) {
  EXPECT_NEAR(*latency_below(curve_by(2)), kLatency / kPerByte, 500);
}

TEST(LatencyBelow, IsMeasuredBeyondFlatSizes) {
  Curve curve;
  for (double bytes = 64; bytes <= kMost; bytes *= 2)
    curve.push_back({bytes, 8e-6 + (bytes < 65536 ? 0 : bytes / 20e9)});
  EXPECT_NEAR(*latency_below(curve), 160e3, 16e3);
}

TEST(LatencyBelow, NeedsSizesOnBothSides) {
  EXPECT_FALSE(latency_below({{64, 8e-6}, {256, 8e-6}})) << "no size takes twice the latency";
  EXPECT_FALSE(latency_below({{1e6, 1e-3}, {2e6, 2e-3}})) << "no size is mostly latency";
}

}  // namespace
}  // namespace howmany::reports
