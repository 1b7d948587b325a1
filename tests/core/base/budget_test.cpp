// SPDX-License-Identifier: Apache-2.0
#include "core/base/budget.h"

#include <gtest/gtest.h>

#include <cmath>

namespace howmany {
namespace {

TEST(Budget, DividesTheTimeLeftByWeight) {
  double now = 0;
  const Budget budget(60, [&] { return now; });
  EXPECT_DOUBLE_EQ(budget.share(1, 4), 15);
  now = 30;
  EXPECT_DOUBLE_EQ(budget.share(1, 3), 10);
  EXPECT_DOUBLE_EQ(budget.share(2, 3, 6), 16);
}

TEST(Budget, FitsOnlyWhatIsLeft) {
  double now = 50;
  const Budget budget(60, [&] { return now; });
  EXPECT_TRUE(budget.fits(10));
  EXPECT_FALSE(budget.fits(10.1));
  now = 70;
  EXPECT_DOUBLE_EQ(budget.left(), 0);
  EXPECT_DOUBLE_EQ(budget.share(1, 2, 5), 0);
}

TEST(Budget, HasNoLimitIfZero) {
  const Budget budget(0);
  EXPECT_FALSE(budget.limited());
  EXPECT_TRUE(budget.fits(1e9));
  EXPECT_TRUE(std::isinf(budget.share(1, 2)));
}

}  // namespace
}  // namespace howmany
