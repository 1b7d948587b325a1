#include "reports/comm/curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace howmany::reports {
namespace {

constexpr double kMost = 64 << 20;

Curve powers_of(double factor, double noise = 0, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  Curve curve;
  for (double bytes = 4; bytes <= kMost; bytes *= factor)
    curve.push_back({bytes, (20e-6 + 1e-9 * bytes) * std::exp(noise * normal(engine))});
  return curve;
}

TEST(AlphaBetaSizes, AreHeldBackOneInFiveWherePowersOfTwoAreFew) {
  for (const double factor : {3, 5, 10}) {
    Curve curve = powers_of(factor);
    curve.push_back({kMost, 20e-6 + 1e-9 * kMost});
    const AlphaBeta fit = fit_alpha_beta(curve);
    EXPECT_GE(fit.fitted, 3) << factor;
    EXPECT_GE(fit.held_back, static_cast<int>(curve.size()) / 5) << factor;
    EXPECT_NEAR(fit.latency(), 20e-6, 1e-9) << factor;
    EXPECT_LT(*fit.held_back_error, 1e-6) << factor;
  }
}

TEST(AlphaBetaSizes, AreAllFittedWhereTheyAreFewerThanFive) {
  const AlphaBeta fit = fit_alpha_beta({{5, 1e-6}, {50, 2e-6}, {500, 11e-6}});
  EXPECT_EQ(fit.fitted, 3);
  EXPECT_EQ(fit.held_back, 0);
}

TEST(AlphaBetaPieces, AreOneWhereALineOnlyHasNoise) {
  int one = 0;
  for (unsigned seed = 0; seed < 100; ++seed)
    one += fit_alpha_beta(powers_of(4, 0.05, seed)).pieces.size() == 1;
  EXPECT_GE(one, 90);
}

TEST(AlphaBetaPieces, NeverPredictALongerMessageFaster) {
  for (const double noise : {0.05, 0.2})
    for (unsigned seed = 0; seed < 100; ++seed) {
      const AlphaBeta fit = fit_alpha_beta(powers_of(2, noise, seed));
      double before = 0;
      for (double bytes = 4; bytes <= kMost; bytes *= 1.05) {
        EXPECT_GE(fit.predict(bytes), (1 - 1e-6) * before) << bytes << " of seed " << seed;
        before = fit.predict(bytes);
      }
    }
}

// Also of a real fall, as where a protocol for long messages begins too late.
TEST(AlphaBetaPieces, DoNotFollowAFall) {
  Curve curve;
  for (double bytes = 4; bytes <= kMost; bytes *= 2)
    curve.push_back({bytes, (bytes <= 32768 ? 40e-6 : 10e-6) + 1e-10 * bytes});
  const AlphaBeta fit = fit_alpha_beta(curve);
  for (double bytes = 4; bytes <= kMost; bytes *= 1.1)
    EXPECT_GE(fit.predict(1.1 * bytes), (1 - 1e-6) * fit.predict(bytes)) << bytes;
}

TEST(AlphaBetaPieces, HaveTwoPointsEachAtLeast) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Curve curve = powers_of(4, 0.1, seed);
    curve.back().seconds *= 10;
    for (const AlphaBeta::Piece& piece : fit_alpha_beta(curve).pieces)
      EXPECT_GE(std::ranges::count_if(curve,
                                      [&](const CurvePoint& p) {
                                        return p.bytes > piece.from && p.bytes <= piece.to;
                                      }),
                2)
          << seed;
  }
}

// Memory beyond the caches may begin at the last two sizes that were measured.
TEST(AlphaBetaPieces, FollowAJumpOfTheLastTwoSizes) {
  Curve curve;
  for (const double bytes : {4., 16., 64., 256., 1024., 4096., 16384., 65536., 262144., 1048576.})
    curve.push_back({bytes, 2e-6 + 1e-10 * bytes});
  for (const double bytes : {4194304., 10e6, 16777216.})
    curve.push_back({bytes, 300e-6 + 2e-10 * bytes});
  const AlphaBeta fit = fit_alpha_beta(curve);
  EXPECT_NEAR(fit.predict(10e6), 300e-6 + 2e-10 * 10e6, 1e-6);
}

TEST(AlphaBetaPieces, MeetWhereTheirLinesCross) {
  Curve curve;
  for (double bytes = 4; bytes <= kMost; bytes *= 4)
    curve.push_back({bytes, std::max(10e-6, 2e-10 * bytes)});
  const AlphaBeta fit = fit_alpha_beta(curve);
  ASSERT_EQ(fit.pieces.size(), 2u);
  EXPECT_NEAR(fit.pieces[0].to, 50e3, 1e3);
}

TEST(AlphaBetaError, IsThatAtSizesLeftOutNotAtThoseOfTheLine) {
  double told = 0, fitted = 0;
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Curve curve = powers_of(16, 0.1, seed);
    const AlphaBeta fit = fit_alpha_beta(curve);
    for (const CurvePoint& p : curve)
      fitted += std::abs(fit.predict(p.bytes) / p.seconds - 1) / static_cast<double>(curve.size());
    told += fit.error;
  }
  EXPECT_GT(told, 1.1 * fitted);
}

}  // namespace
}  // namespace howmany::reports
