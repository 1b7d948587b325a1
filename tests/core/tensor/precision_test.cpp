// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "core/tensor/bf16.h"
#include "core/tensor/tensor.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

TEST(Precision, IsFoundByNameOrTheNearestIsSuggested) {
  for (const std::string_view name : precision_names())
    EXPECT_EQ(name_of(precision_named(name)), name);
  EXPECT_THAT(message_of<std::invalid_argument>([&] { precision_named("bf61"); }),
              testing::HasSubstr("unknown precision 'bf61', did you mean 'bf16'?"));
}

TEST(Precision, HoldsForThisThreadUntilItsScopeEnds) {
  EXPECT_EQ(current_precision(), Precision::f32);
  {
    const PrecisionScope outer(Precision::bf16);
    {
      const PrecisionScope inner(Precision::tf32);
      EXPECT_EQ(current_precision(), Precision::tf32);
    }
    EXPECT_EQ(current_precision(), Precision::bf16);
    Precision elsewhere = Precision::bf16;
    std::thread([&] { elsewhere = current_precision(); }).join();
    EXPECT_EQ(elsewhere, Precision::f32);
  }
  EXPECT_EQ(current_precision(), Precision::f32);
}

// The result must be the nearest bf16 number, or the even one of two equally near.
TEST(Precision, RoundsToTheNearestBf16) {
  for (const float value : {1.0f, -1.0f, 3.14159f, 1e-30f, -2.5e20f, 1.00390625f, 1.01171875f, 0.0f,
                            -0.0f, 1e-40f, std::numeric_limits<float>::infinity()}) {
    const uint16_t got = to_bf16(value);
    const double off = std::abs(double{from_bf16(got)} - double{value});
    for (const int step : {-1, 1}) {
      const double other = from_bf16(static_cast<uint16_t>(got + step));
      if (!std::isfinite(other) || !std::isfinite(value)) continue;
      EXPECT_TRUE(off < std::abs(other - double{value}) ||
                  (off == std::abs(other - double{value}) && got % 2 == 0))
          << value << " became " << from_bf16(got);
    }
  }
  EXPECT_EQ(from_bf16(to_bf16(std::numeric_limits<float>::infinity())),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(from_bf16(to_bf16(-0.0f))));
}

TEST(Bf16, IsAnElementTypeLikeOthers) {
  const Tensor t = Tensor::from<float>({1.00390625f, -3, 1e30f, 0}, {4}).to(Dtype::bf16);
  EXPECT_EQ(t.bytes(), 8);
  EXPECT_EQ(name_of(t.dtype()), "bf16");
  const std::vector<Bf16> values(t.values<Bf16>().begin(), t.values<Bf16>().end());
  EXPECT_EQ(values[0], 1.0f);  // a tie, rounded to even
  EXPECT_EQ(values[1], -3.0f);
  EXPECT_EQ(t.to(Dtype::f64).values<double>()[2], double{from_bf16(to_bf16(1e30f))});
  EXPECT_EQ(t.rows(1, 2).to(Dtype::i32).item(), -3);
  EXPECT_EQ(Tensor::full({1}, 0.1, Dtype::bf16).item(), double{from_bf16(to_bf16(0.1f))});
}

TEST(Precision, KeepsWhatIsNotANumber) {
  for (const uint32_t bits : {0x7f80'0001u, 0x7fc0'0000u, 0xffff'ffffu})
    EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(bits))))) << bits;
}

TEST(Precision, GrowsTheLargestToInfinityAsF32DoesItsOwn) {
  EXPECT_EQ(from_bf16(to_bf16(std::numeric_limits<float>::max())),
            std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace howmany
