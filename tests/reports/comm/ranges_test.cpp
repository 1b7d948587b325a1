// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "reports/comm/ranges.h"

namespace howmany::reports {
namespace {

constexpr int kSizes = 12;

CurvePoint point(double bytes, double seconds, double factor) {
  return {bytes, seconds, Interval{seconds / factor, seconds * factor}};
}

// A curve of kSizes sizes that all take `seconds`. The 95 % interval is within `factor` of it.
Curve flat(double seconds, double factor) {
  Curve curve;
  for (int i = 0; i < kSizes; ++i) curve.push_back(point(1 << i, seconds, factor));
  return curve;
}

std::vector<std::string> backends(const std::vector<BestRange>& ranges) {
  std::vector<std::string> names;
  for (const BestRange& range : ranges) names.push_back(range.backend);
  return names;
}

using Names = std::vector<std::string>;

TEST(BestRanges, HaveNoneForACellThatWasSlowByChance) {
  Curve local = flat(1e-6, 1.05);
  local[3] = point(8, 100e-6, 1000);
  local[4] = point(16, 200e-6, 1000);
  const auto best = best_ranges({{"local", local}, {"mpi", flat(2e-6, 1.05)}});
  EXPECT_EQ(backends(best), Names{"local"});
  EXPECT_FALSE(best[0].certain);
  EXPECT_TRUE(best[0].partly);
}

TEST(BestRanges, HaveOneForACellThatIsApart) {
  Curve local = flat(1e-6, 1.05);
  local[3] = point(8, 100e-6, 1.05);
  const auto best = best_ranges({{"local", local}, {"mpi", flat(2e-6, 1.05)}});
  EXPECT_EQ(backends(best), (Names{"local", "mpi", "local"}));
  for (const BestRange& range : best) EXPECT_TRUE(range.certain);
}

TEST(BestRanges, FollowWhatIsLittleFasterAtManySizes) {
  Curve local = flat(1e-6, 1.5);
  const Curve mpi = flat(1.3e-6, 1.5);
  for (int i = kSizes / 2; i < kSizes; ++i)
    local[static_cast<size_t>(i)] = point(1 << i, 1.69e-6, 1.5);
  const auto same = [&](int sizes) {
    return backends(best_ranges(
        {{"local", Curve(local.begin() + kSizes / 2 - 2, local.end())},
         {"mpi", Curve(mpi.begin() + kSizes / 2 - 2, mpi.begin() + kSizes / 2 + sizes)}}));
  };
  EXPECT_EQ(same(kSizes / 2).back(), "mpi");
  EXPECT_EQ(same(1), Names{"local"});
}

TEST(BestRanges, OfCellsWithoutIntervalsAreThoseOfTheFastest) {
  Curve local = flat(1e-6, 1.05), mpi = flat(2e-6, 1.05);
  local[5] = {32, 3e-6};
  EXPECT_EQ(backends(best_ranges({{"local", local}, {"mpi", mpi}})),
            (Names{"local", "mpi", "local"}));
}

}  // namespace
}  // namespace howmany::reports
