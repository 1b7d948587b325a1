// SPDX-License-Identifier: Apache-2.0
// Compares layers and their gradients with PyTorch's, in f64.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "tests/support/golden.h"

namespace howmany {
namespace {

using golden::matches;
using golden::wave;

// Runs `layer` on x with parameters wave(phase 2), wave(phase 3), ... Compares y, dx and every
// parameter's gradient with golden.py's keep_layer(name). d0 is the gradient of the input, if it
// has one.
void check_layer(const std::string& name, Layer& layer, const Tensor& x, double first_phase = 2) {
  materialize(layer, {.dtype = Dtype::f64});
  const std::vector<Param*> params = trainable_params(layer);
  for (size_t i = 0; i < params.size(); ++i)
    golden::fill_wave(params[i]->value, first_phase + static_cast<double>(i));
  Tape tape;
  const Tensor y = layer.forward(x, tape);
  EXPECT_TRUE(matches(name + ".y", y));
  const Tensor dx = layer.backward(wave(y.shape(), 9), tape);
  size_t slot = 0;
  if (dx) {
    EXPECT_TRUE(matches(fmt::format("{}.d{}", name, slot++), dx));
  }
  for (const Param* p : params)
    EXPECT_TRUE(matches(fmt::format("{}.d{}", name, slot++), p->grad)) << p->name;
  EXPECT_FALSE(golden::sums().contains(fmt::format("{}.d{}", name, slot)));
}

const Shape kImage{2, 5, 4, 3};

TEST(LayerGolden, LinearAndItsActivations) {
  const Tensor x = wave({3, 5}, 1);
  check_layer("linear", *layers::linear(5, 4), x);
  check_layer("linear_relu", *layers::linear(5, 4, Activation::relu), x);
  check_layer("linear_gelu", *layers::linear(5, 4, Activation::gelu), x);
}

TEST(LayerGolden, GeluIsTheExactForm) { check_layer("gelu", *layers::gelu(), wave({3, 5}, 1, 4)); }

TEST(LayerGolden, Conv2dWithStrideAndPadding) {
  check_layer("conv2d", *layers::conv2d(3, 4, {3, 2, 1}), wave(kImage, 1));
}

TEST(LayerGolden, LayerNorm) { check_layer("layernorm", *layers::layernorm(5), wave({3, 5}, 1)); }

TEST(LayerGolden, GroupNorm) {
  check_layer("groupnorm", *layers::groupnorm(2, 6), wave({2, 3, 4, 6}, 1));
}

TEST(LayerGolden, RmsNorm) { check_layer("rmsnorm", *layers::rmsnorm(5), wave({3, 5}, 1)); }

TEST(LayerGolden, SwigluGatesItsSecondHalf) {
  check_layer("swiglu", *layers::swiglu(), wave({3, 10}, 1, 4));
}

TEST(LayerGolden, RotaryTurnsAndRepeatsHeads) {
  check_layer("rotary", *layers::rotary({4, 2}, 7), wave({2, 5, 32}, 1));
}

TEST(LayerGolden, SegmentAddsItsFirstRow) {
  check_layer("segment", *layers::segment(2, 4), wave({2, 3, 4}, 1));
}

TEST(LayerGolden, PoolsWithPadding) {
  check_layer("max_pool", *layers::max_pool({3, 2, 1}), wave(kImage, 1));
  check_layer("avg_pool", *layers::avg_pool({3, 2, 1}), wave(kImage, 1));
}

TEST(LayerGolden, EmbeddingAddsUpRepeatedIds) {
  const Tensor ids = Tensor::from<int64_t>({1, 4, 1, 0, 6, 1}, {2, 3});
  check_layer("embedding", *layers::embedding(7, 4), ids, 1);
}

TEST(LayerGolden, AttentionOfSeveralHeadsAndOfOne) {
  const Tensor x = wave({2, 5, 18}, 1);
  check_layer("attention", *layers::attention({.count = 3}), x);
  check_layer("attention_both_ways", *layers::attention({.count = 1, .causal = false}), x);
}

TEST(LayerGolden, PositionAddsTheFirstRows) {
  check_layer("position", *layers::position(5, 4), wave({2, 3, 4}, 1));
}

void check_batchnorm(const std::string& name, Activation act) {
  const LayerPtr layer = layers::batchnorm(3, act);
  check_layer(name, *layer, wave(kImage, 1));
  const std::vector<Param*> params = all_params(*layer);
  golden::fill_wave(params[2]->value, 4);
  golden::fill_wave(params[3]->value, 5);
  for (double& v : params[3]->value.mutable_values<double>()) v += 2;
  Tape training;
  layer->forward(wave(kImage, 1), training);
  EXPECT_TRUE(matches(name + ".running_mean", params[2]->value));
  EXPECT_TRUE(matches(name + ".running_var", params[3]->value));
  Tape inference({.training = false});
  EXPECT_TRUE(matches(name + ".inference", layer->forward(wave(kImage, 1), inference)));
}

TEST(LayerGolden, BatchNormAndItsRunningStatistics) {
  check_batchnorm("batchnorm", Activation::none);
  check_batchnorm("batchnorm_relu", Activation::relu);
}

}  // namespace
}  // namespace howmany
