// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include "core/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/tensor/rng.h"

namespace howmany {
namespace {

using ::testing::ElementsAre;

TEST(TensorDataset, YieldsTheRowsItWasGiven) {
  const auto data = tensor_dataset(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}),
                                   Tensor::from<int64_t>({7, 8, 9}, {3}));
  EXPECT_EQ(data->size(), 3);
  EXPECT_EQ(data->spec().x, Shape({2}));
  EXPECT_EQ(data->spec().y, Shape());
  std::vector<float> x(2);
  int64_t y = 0;
  data->get(1, 0, x.data(), &y);
  EXPECT_THAT(x, ElementsAre(3, 4));
  EXPECT_EQ(y, 8);
  EXPECT_THROW(data->get(3, 0, x.data(), &y), std::invalid_argument);
  EXPECT_THROW(data->get(-1, 0, x.data(), &y), std::invalid_argument);
}

TEST(TensorDataset, RefusesUnequalCounts) {
  EXPECT_THROW(tensor_dataset(Tensor::zeros({3, 2}), Tensor::zeros({2})), std::invalid_argument);
  EXPECT_THROW(tensor_dataset(Tensor::zeros({}), Tensor::zeros({})), std::invalid_argument);
  EXPECT_THROW(tensor_dataset({}, {}), std::invalid_argument);
}

struct Drawn {
  std::vector<float> x;
  int64_t y = 0;
  bool operator==(const Drawn&) const = default;
};

Drawn draw(const Dataset& data, int64_t index) {
  Drawn drawn{std::vector<float>(static_cast<size_t>(data.spec().x.numel()))};
  data.get(index, 0, drawn.x.data(), &drawn.y);
  return drawn;
}

// Sizes below and above the size of the pool from which samples are taken.
class Synthetic : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Inputs, Synthetic, ::testing::Values(10, 3000, 40000));

TEST_P(Synthetic, SampleIsAFunctionOfSeedAndIndex) {
  const SampleSpec spec{.x = {GetParam()}};
  const auto data = synthetic_dataset(spec, 1000, 10, 5);
  const auto again = synthetic_dataset(spec, 1000, 10, 5);
  const auto other = synthetic_dataset(spec, 1000, 10, 6);
  EXPECT_EQ(draw(*data, 900), draw(*again, 900));
  EXPECT_NE(draw(*data, 900).x, draw(*data, 901).x);
  EXPECT_NE(draw(*data, 900).x, draw(*other, 900).x);
}

TEST_P(Synthetic, InputsAreNormalAndLabelsCoverTheClasses) {
  const auto data = synthetic_dataset({.x = {GetParam()}}, 500, 7, 1);
  double sum = 0, squares = 0, n = 0;
  std::set<int64_t> labels;
  for (int64_t i = 0; i < 500; ++i) {
    const Drawn drawn = draw(*data, i);
    labels.insert(drawn.y);
    for (float v : drawn.x) sum += v, squares += v * v, ++n;
  }
  EXPECT_NEAR(sum / n, 0, 0.05);
  EXPECT_NEAR(squares / n, 1, 0.05);
  EXPECT_THAT(labels, ElementsAre(0, 1, 2, 3, 4, 5, 6));
}

TEST(SyntheticDataset, ASampleMayHaveALabelForEachToken) {
  const auto data =
      synthetic_dataset({.x = {4}, .x_dtype = Dtype::i64, .y = {4}, .vocabulary = 9}, 100, 9, 1);
  std::set<int64_t> ids, labels;
  for (int64_t i = 0; i < 100; ++i) {
    std::vector<int64_t> x(4), y(4);
    data->get(i, 0, x.data(), y.data());
    ids.insert(x.begin(), x.end());
    labels.insert(y.begin(), y.end());
  }
  EXPECT_THAT(ids, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(labels, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(SyntheticDataset, TargetsAreALinearMapOfTheInputs) {
  const auto data = synthetic_dataset({.x = {3}, .y = {2}, .y_dtype = Dtype::f32}, 50, 0, 9);
  const auto get = [&](int64_t i, float* x, float* y) { data->get(i, 0, x, y); };
  // Any four inputs of three numbers are linearly dependent, and so are their targets. Solves for
  // the fourth by Cramer's rule.
  float x[4][3], y[4][2];
  for (int i = 0; i < 4; ++i) get(i, x[i], y[i]);
  const auto det = [](const float* a, const float* b, const float* c) {
    return double{a[0]} * (b[1] * c[2] - b[2] * c[1]) - double{a[1]} * (b[0] * c[2] - b[2] * c[0]) +
           double{a[2]} * (b[0] * c[1] - b[1] * c[0]);
  };
  const double all = det(x[0], x[1], x[2]);
  ASSERT_GT(std::abs(all), 1e-3);
  const double k[] = {det(x[3], x[1], x[2]) / all, det(x[0], x[3], x[2]) / all,
                      det(x[0], x[1], x[3]) / all};
  for (int c = 0; c < 2; ++c) {
    EXPECT_NEAR(y[3][c], k[0] * y[0][c] + k[1] * y[1][c] + k[2] * y[2][c], 1e-4);
    EXPECT_NE(y[0][c], 0);
  }
}

TEST(SyntheticDataset, RefusesSpecsItCannotDraw) {
  EXPECT_THROW(synthetic_dataset({.x = {4}, .x_dtype = Dtype::u8}, 8, 2, 0), std::invalid_argument);
  EXPECT_THROW(synthetic_dataset({.x = {4}, .y = {0}}, 8, 2, 0), std::invalid_argument);
  EXPECT_THROW(synthetic_dataset({.x = {4}}, 8, 0, 0), std::invalid_argument);
  EXPECT_THROW(synthetic_dataset({.x = {4}}, 0, 2, 0), std::invalid_argument);
}

}  // namespace
}  // namespace howmany
