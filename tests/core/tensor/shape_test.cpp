// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace howmany {
namespace {

TEST(Shape, CountsItsElements) {
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).numel(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).numel(), 0);
  EXPECT_EQ((Shape{2, 3, 4}).row_numel(), 12);
  EXPECT_EQ((Shape{0, 3}).row_numel(), 3);
}

TEST(Shape, IndexesFromBothEnds) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s[0], 2);
  EXPECT_EQ(s[-1], 4);
  EXPECT_THROW(s[3], std::invalid_argument);
  EXPECT_THROW(s[-4], std::invalid_argument);
  EXPECT_THROW(Shape()[0], std::invalid_argument);
}

TEST(Shape, ComparesByExtentsAndRank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE(Shape(), (Shape{1}));
}

TEST(Shape, PrintsItself) {
  EXPECT_EQ((Shape{2, 3}).str(), "[2,3]");
  EXPECT_EQ(Shape().str(), "[]");
}

TEST(Shape, ReplacesItsRows) {
  EXPECT_EQ((Shape{8, 3}).with_rows(2), (Shape{2, 3}));
  EXPECT_THROW(Shape().with_rows(2), std::invalid_argument);
  EXPECT_THROW((Shape{8}).with_rows(-1), std::invalid_argument);
}

TEST(Shape, RefusesWhatCannotBe) {
  EXPECT_THROW((Shape{2, -1}), std::invalid_argument);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), std::invalid_argument);
  EXPECT_NO_THROW((Shape{1, 1, 1, 1, 1, 1}));
}

TEST(Shape, RefusesCountsPast63Bits) {
  const int64_t big = int64_t{1} << 32;
  EXPECT_EQ((Shape{big, big / 4}).numel(), int64_t{1} << 62);
  EXPECT_THROW((Shape{big, big}).numel(), std::invalid_argument);
  EXPECT_EQ((Shape{big, big, 0}).numel(), 0);
}

}  // namespace
}  // namespace howmany
