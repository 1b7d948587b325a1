// SPDX-License-Identifier: Apache-2.0
#include "core/nn/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/golden.h"
#include "tests/support/message_of.h"

namespace howmany {
namespace {

using golden::matches;
using golden::wave;
using testing::HasSubstr;

TEST(Loss, CrossEntropyIsPyTorchs) {
  const Tensor labels = Tensor::from<int64_t>({4, 0, 2}, {3});
  const auto loss = compute_loss(Loss::softmax_cross_entropy, wave({3, 5}, 1, 5), labels, 3);
  EXPECT_TRUE(matches("cross_entropy.loss", loss.value()));
  EXPECT_TRUE(matches("cross_entropy.d", loss.dy));
}

TEST(Loss, CrossEntropyOfTokensIsTheirMean) {
  const Tensor y = wave({2, 3, 5}, 1, 5),
               labels = Tensor::from<int64_t>({4, 0, 2, 1, 1, 3}, {2, 3});
  const auto loss = compute_loss(Loss::softmax_cross_entropy, y, labels, 2);
  const auto flat = compute_loss(Loss::softmax_cross_entropy, y.view({6, 5}), labels.view({6}), 6);
  EXPECT_NEAR(loss.value(), flat.value(), 1e-12);
  EXPECT_EQ(loss.dy.shape(), y.shape());
  for (int64_t i = 0; i < y.numel(); ++i)
    EXPECT_NEAR(loss.dy.data<double>()[i], flat.dy.data<double>()[i], 1e-12);
  const auto half = compute_loss(Loss::softmax_cross_entropy, y.rows(1, 2), labels.rows(1, 2), 2);
  EXPECT_NEAR(half.dy.data<double>()[7], loss.dy.data<double>()[15 + 7], 1e-12);
}

TEST(Loss, MseIsPyTorchs) {
  const auto loss = compute_loss(Loss::mse, wave({3, 2}, 1), wave({3, 2}, 2), 3);
  EXPECT_TRUE(matches("mse.loss", loss.value()));
  EXPECT_TRUE(matches("mse.d", loss.dy));
}

TEST(Loss, PartsOfABatchSumToTheWhole) {
  const Tensor y = wave({5, 3}, 1), labels = Tensor::from<int64_t>({0, 2, 1, 1, 0}, {5});
  const double whole = compute_loss(Loss::softmax_cross_entropy, y, labels, 5).value();
  double sum = 0;
  for (const auto& [begin, end] : {std::pair{0, 2}, {2, 2}, {2, 5}})
    sum += compute_loss(Loss::softmax_cross_entropy, y.rows(begin, end), labels.rows(begin, end), 5)
               .value();
  EXPECT_NEAR(sum, whole, 1e-12);
}

TEST(Loss, CountsTheRowsOfYIfTheBatchIsWhole) {
  const Tensor y = wave({3, 2}, 1), target = wave({3, 2}, 2);
  EXPECT_EQ(compute_loss(Loss::mse, y, target).value(),
            compute_loss(Loss::mse, y, target, 3).value());
  EXPECT_THROW(compute_loss(Loss::mse, Tensor(), target), std::invalid_argument);
}

TEST(Loss, SurvivesLargeLogits) {
  const Tensor y = Tensor::from<float>({1000, -1000, 0, 3e38f, -3e38f, 0}, {2, 3});
  const auto loss =
      compute_loss(Loss::softmax_cross_entropy, y, Tensor::from<int64_t>({0, 0}, {2}), 2);
  EXPECT_EQ(loss.value(), 0);
  for (float d : loss.dy.values<float>()) EXPECT_EQ(d, 0);
}

std::string refusal(Loss loss, const Tensor& y, const Tensor& target, int64_t rows) {
  return message_of<std::invalid_argument>([&] { compute_loss(loss, y, target, rows); });
}

TEST(Loss, RefusesWhatDoesNotFit) {
  const Tensor y = Tensor::zeros({2, 3});
  const auto labels = [](std::vector<int64_t> values) {
    return Tensor::from(values, {static_cast<int64_t>(values.size())});
  };
  const auto cross = [&](const Tensor& t, int64_t rows = 2) {
    return refusal(Loss::softmax_cross_entropy, y, t, rows);
  };
  EXPECT_EQ(cross(labels({0, 3})), "[softmax_cross_entropy] label 1 is 3, outside [0, 3)");
  EXPECT_EQ(cross(labels({-1, 0})), "[softmax_cross_entropy] label 0 is -1, outside [0, 3)");
  EXPECT_THAT(cross(labels({0})), HasSubstr("target is i64 [1], expected i64 [2]"));
  EXPECT_THAT(cross(Tensor::zeros({2})), HasSubstr("target is f32 [2], expected i64 [2]"));
  EXPECT_THAT(cross(Tensor()), HasSubstr("target is an empty handle"));
  EXPECT_THAT(cross(labels({0, 0}), 1), HasSubstr("1 samples in the global batch, y [2,3]"));
  EXPECT_THAT(refusal(Loss::mse, y, Tensor::zeros({3, 2}), 2),
              HasSubstr("[mse] target is f32 [3,2], expected f32 [2,3]"));
  EXPECT_THAT(refusal(Loss::mse, Tensor::zeros({2}), Tensor::zeros({2}), 2),
              HasSubstr("expected 2 extents"));
}

}  // namespace
}  // namespace howmany
