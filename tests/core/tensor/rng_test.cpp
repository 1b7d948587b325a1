// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/rng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

namespace howmany {
namespace {

using Block = std::array<uint32_t, 4>;

// Random123's known-answer vectors for philox4x32-10.
TEST(Rng, PhiloxGivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, IsAFunctionOfSeedStreamAndIndexAlone) {
  const Rng rng(1, 2);
  const std::vector<uint32_t> forwards{rng.bits(0), rng.bits(5), rng.bits(1'000'000'000'000)};
  EXPECT_EQ(Rng(1, 2).bits(1'000'000'000'000), forwards[2]);
  EXPECT_EQ(Rng(1, 2).bits(5), forwards[1]);
  EXPECT_NE(Rng(1, 3).bits(5), forwards[1]);
  EXPECT_NE(Rng(2, 2).bits(5), forwards[1]);
  EXPECT_NE(Rng(1, uint64_t{2} << 32).bits(5), forwards[1]);
  EXPECT_NE(rng.bits(uint64_t{1} << 34), rng.bits(0));  // uses the counter's upper half
}

TEST(Rng, BitsUseAllFourWordsOfABlock) {
  std::set<uint32_t> seen;
  for (uint64_t i = 0; i < 1000; ++i) seen.insert(Rng(9).bits(i));
  EXPECT_EQ(seen.size(), 1000u);
}

TEST(Rng, UniformHasTheRightMomentsAndRange) {
  const Rng rng(3, stream_of("uniform"));
  constexpr int kDraws = 100'000;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double v = rng.uniform(i);
    ASSERT_GE(v, 0);
    ASSERT_LT(v, 1);
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);  // 5 standard errors
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.005);
}

TEST(Rng, NormalHasTheRightMoments) {
  const Rng rng(4);
  constexpr int kDraws = 100'000;
  double moments[4] = {};
  for (uint64_t i = 0; i < kDraws; ++i)
    for (int m = 0; m < 4; ++m) moments[m] += std::pow(rng.normal(i), m + 1) / kDraws;
  EXPECT_NEAR(moments[0], 0, 0.016);
  EXPECT_NEAR(moments[1], 1, 0.023);
  EXPECT_NEAR(moments[2], 0, 0.062);
  EXPECT_NEAR(moments[3], 3, 0.16);
}

TEST(Rng, BelowReachesEveryValueAndNoOther) {
  std::set<int64_t> seen;
  for (uint64_t i = 0; i < 200; ++i) seen.insert(Rng(5).below(i, 6));
  EXPECT_THAT(seen, testing::ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(Rng(5).below(7, 1), 0);
  EXPECT_THROW(Rng(5).below(0, 0), std::invalid_argument);
  EXPECT_THROW(Rng(5).below(0, -3), std::invalid_argument);
}

TEST(Rng, FillsFloatsAndDoublesAlike) {
  for (int64_t size : {0, 1, 3, 4, 102}) {
    Tensor narrow = Tensor::empty({size}), wide = Tensor::empty({size}, Dtype::f64);
    fill_uniform(narrow, -2, 3, Rng(6));
    fill_uniform(wide, -2, 3, Rng(6));
    EXPECT_TRUE(std::ranges::equal(narrow.values<float>(), wide.values<double>()));
    fill_normal(narrow, 1, 2, Rng(6));
    fill_normal(wide, 1, 2, Rng(6));
    EXPECT_TRUE(std::ranges::equal(narrow.values<float>(), wide.values<double>()));
  }
  Tensor ids = Tensor::zeros({3}, Dtype::i64);
  EXPECT_THROW(fill_uniform(ids, 0, 1, Rng(6)), std::invalid_argument);
}

TEST(Rng, FillsEachElementWhateverTheSize) {
  Tensor part = Tensor::empty({9}), whole = Tensor::empty({50});
  for (const auto& fill : {fill_uniform, fill_normal}) {
    fill(part, 0, 1, Rng(6));
    fill(whole, 0, 1, Rng(6));
    EXPECT_TRUE(std::ranges::equal(part.values<float>(), whole.flat(0, 9).values<float>()));
  }
}

// Checks moments of the values and of the products of adjacent values. The latter would show that
// values of one block depend on each other.
void check_moments(const Tensor& t, const std::array<double, 4>& want, double neighbours) {
  const auto v = t.values<float>();
  std::array<double, 4> moments{};
  std::array<double, 3> products{};
  for (size_t i = 0; i + 3 < v.size(); ++i) {
    for (size_t m = 0; m < 4; ++m) moments[m] += std::pow(double{v[i]}, static_cast<int>(m) + 1);
    for (size_t lag = 1; lag <= 3; ++lag) products[lag - 1] += double{v[i]} * v[i + lag];
  }
  const double n = static_cast<double>(v.size() - 3);
  for (size_t m = 0; m < 4; ++m) EXPECT_NEAR(moments[m] / n, want[m], 0.16) << m;
  EXPECT_NEAR(moments[0] / n, want[0], 0.016);  // 5 standard errors
  EXPECT_NEAR(moments[1] / n, want[1], 0.023);
  for (double p : products) EXPECT_NEAR(p / n, neighbours, 0.016);
}

TEST(Rng, FillsWithTheRightMoments) {
  Tensor t = Tensor::empty({100'000});
  fill_normal(t, 0, 1, Rng(8));
  check_moments(t, {0, 1, 0, 3}, 0);
  fill_uniform(t, 0, 1, Rng(8));
  check_moments(t, {0.5, 1.0 / 3, 0.25, 0.2}, 0.25);
  EXPECT_GE(*std::ranges::min_element(t.values<float>()), 0);
  EXPECT_LE(*std::ranges::max_element(t.values<float>()), 1);
}

TEST(Rng, RandnIsTheFillOfANewTensor) {
  Tensor filled = Tensor::empty({3, 5});
  fill_normal(filled, 0, 1, Rng(7));
  const Tensor made = randn({3, 5}, Rng(7));
  EXPECT_EQ(made.shape(), filled.shape());
  EXPECT_TRUE(std::ranges::equal(made.values<float>(), filled.values<float>()));
}

TEST(Rng, RandintReachesEveryValueAndNoOther) {
  const Tensor drawn = randint(-1, 2, {1000}, Rng(1));
  const auto values = drawn.values<int64_t>();
  EXPECT_EQ(std::set(values.begin(), values.end()), (std::set<int64_t>{-1, 0, 1}));
  EXPECT_THROW(randint(2, 2, {1}, Rng(1)), std::invalid_argument);
}

TEST(Rng, PermutationHoldsEachIndexOnce) {
  std::vector<int64_t> order = permutation(1000, Rng(7)), sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> identity(1000);
  std::iota(identity.begin(), identity.end(), int64_t{0});
  EXPECT_EQ(sorted, identity);
  EXPECT_NE(order, identity);
  EXPECT_NE(order, permutation(1000, Rng(8)));
  EXPECT_EQ(order, permutation(1000, Rng(7)));
  EXPECT_TRUE(permutation(0, Rng(7)).empty());
}

TEST(Rng, PermutationsAreEquallyLikely) {
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t seed = 0; seed < 6000; ++seed) ++counts[permutation(3, Rng(seed))];
  ASSERT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 150);  // 5 deviations
}

}  // namespace
}  // namespace howmany
