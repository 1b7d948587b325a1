// SPDX-License-Identifier: Apache-2.0
#include "core/data/fitted_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace howmany {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

template <typename T>
Tensor tensor(const Shape& shape, const std::vector<T>& values) {
  Tensor t = Tensor::empty(shape, dtype_of<T>());
  std::copy(values.begin(), values.end(), t.template mutable_data<T>());
  return t;
}

template <typename Y>
std::pair<std::vector<float>, std::vector<Y>> first(const Dataset& data) {
  std::vector<float> x(static_cast<size_t>(data.spec().x.numel()));
  std::vector<Y> y(static_cast<size_t>(data.spec().y.numel()));
  data.get(0, 0, x.data(), y.data());
  return {x, y};
}

TEST(FitSamples, ImagesOfBytesBecomeFloatsWithChannelsLast) {
  const auto fitted = fit_samples(tensor_dataset(tensor<uint8_t>({1, 2, 1, 2}, {0, 51, 102, 255}),
                                                 tensor<int32_t>({1, 1}, {7})),
                                  {.x = {1, 2, 2}});
  EXPECT_EQ(fitted->spec().x, Shape({1, 2, 2}));
  const auto [x, y] = first<int64_t>(*fitted);
  EXPECT_THAT(x, ElementsAre(0, 102 / 255.F, 51 / 255.F, 1));
  EXPECT_THAT(y, ElementsAre(7));
  EXPECT_THAT(fitted->describe(),
              EndsWith("memory, x u8 [2,1,2] to f32 [1,2,2]: divided by 255, channels last, "
                       "y i32 [1] to i64 []"));
}

TEST(FitSamples, OtherNumbersKeepTheirValue) {
  const auto fitted = fit_samples(
      tensor_dataset(tensor<double>({1, 2, 2}, {0.5, 2, -3, 4}), tensor<double>({1, 2}, {1.5, 2})),
      {.x = {4}, .y = {2}, .y_dtype = Dtype::f32});
  const auto [x, y] = first<float>(*fitted);
  EXPECT_THAT(x, ElementsAre(0.5, 2, -3, 4));
  EXPECT_THAT(y, ElementsAre(1.5, 2));
  for (const Tensor& numbers : {tensor<int32_t>({1, 2}, {3, -4}), tensor<int64_t>({1, 2}, {3, -4})})
    EXPECT_THAT(
        first<int64_t>(*fit_samples(tensor_dataset(numbers, tensor<int64_t>({1}, {0})), {.x = {2}}))
            .first,
        ElementsAre(3, -4));
}

TEST(FitSamples, TokenIdsMayBeOfAnyIntegerType) {
  const auto fitted =
      fit_samples(tensor_dataset(tensor<int32_t>({1, 2}, {3, 4}), tensor<int32_t>({1, 2}, {4, 5})),
                  {.x = {2}, .x_dtype = Dtype::i64, .y = {2}});
  std::vector<int64_t> x(2), y(2);
  fitted->get(0, 0, x.data(), y.data());
  EXPECT_THAT(x, ElementsAre(3, 4));
  EXPECT_THAT(y, ElementsAre(4, 5));
}

TEST(FitSamples, ASquareImageIsTakenAsItIs) {
  const auto fitted =
      fit_samples(tensor_dataset(tensor<float>({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}),
                                 tensor<int64_t>({1}, {0})),
                  {.x = {2, 2, 2}});
  EXPECT_THAT(fitted->describe(), EndsWith("in memory"));
  EXPECT_THAT(first<int64_t>(*fitted).first, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(FitSamples, WhatCannotBeConvertedStays) {
  const auto labels = tensor<int64_t>({1}, {0});
  const auto spec_after = [](const Tensor& x, const Tensor& y, const SampleSpec& wanted) {
    const auto fitted = fit_samples(tensor_dataset(x, y), wanted);
    EXPECT_THAT(fitted->describe(), EndsWith("in memory"));
    return fitted->spec();
  };
  EXPECT_EQ(spec_after(tensor<float>({1, 4}, {0, 1, 2, 3}), labels, {.x = {5}}).x, Shape({4}));
  EXPECT_EQ(spec_after(tensor<float>({1, 2, 3}, {0, 1, 2, 3, 4, 5}), labels, {.x = {3, 2}}).x,
            Shape({2, 3}));
  EXPECT_EQ(
      spec_after(tensor<float>({1, 1}, {0.5}), labels, {.x = {1}, .x_dtype = Dtype::i64}).x_dtype,
      Dtype::f32);
  EXPECT_EQ(spec_after(tensor<float>({1, 1}, {0.5}), tensor<float>({1}, {0.5}), {.x = {1}}).y_dtype,
            Dtype::f32);
}

}  // namespace
}  // namespace howmany
