// SPDX-License-Identifier: Apache-2.0
// Backends never hide a NaN or an infinity: elements that are not finite with the reference are not
// finite with any backend.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/nn/loss.h"
#include "core/ops/ops.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::Draw;
using testing_support::fresh_seed;
using Tensors = std::vector<Tensor>;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kTrials = 100;

std::vector<bool> not_finite_in(const Tensor& t) {
  const Tensor values = t.to(Dtype::f64);
  std::vector<bool> found;
  for (const double v : values.values<double>()) found.push_back(!std::isfinite(v));
  return found;
}

// Compares with the reference: compare(name, output, got, wanted).
template <typename Compare>
void each_output(const std::function<Tensors()>& run, const Compare& compare) {
  Tensors want;
  {
    const BackendScope reference(backend_named("reference"));
    want = run();
  }
  for (const std::string_view name : backend_names()) {
    const Backend& backend = backend_named(name);
    if (backend.device_type() != DeviceType::cpu) continue;
    const BackendScope scope(backend);
    const Tensors got = run();
    for (size_t i = 0; i < want.size(); ++i)
      compare(name, i, not_finite_in(got[i]), not_finite_in(want[i]));
  }
}

void expect_same_elements(const std::function<Tensors()>& run) {
  each_output(run, [](auto name, size_t output, const auto& got, const auto& want) {
    EXPECT_EQ(got, want) << name << ", output " << output;
  });
}

void expect_none_hidden(const std::function<Tensors()>& run) {
  each_output(run, [](auto name, size_t output, const auto& got, const auto& want) {
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(got[i] || !want[i]) << name << ", output " << output << ", element " << i;
  });
}

void spoil(Tensor& t, Draw& draw, float value) {
  const auto at = static_cast<int64_t>(draw.ids({1}, t.numel()).item());
  t.mutable_data<float>()[at] = value;
}

class Nan : public testing::TestWithParam<float> {};

TEST_P(Nan, IsKeptByBatchNorm) {
  Draw draw(fresh_seed());
  for (int trial = 0; trial < kTrials; ++trial) {
    Tensor x = draw.normal({32, 7});
    spoil(x, draw, GetParam());
    const Tensor scale = draw.normal({7}), shift = draw.normal({7});
    for (const Activation act : {Activation::none, Activation::relu})
      expect_same_elements([&] {
        BatchNormState state{Tensor::zeros({7}), Tensor::full({7}, 1)};
        const auto result = ops::batchnorm(x, scale, shift, act, state);
        return Tensors{result.y, state.running_mean, state.running_var};
      });
  }
}

TEST_P(Nan, IsKeptByCrossEntropy) {
  Draw draw(fresh_seed());
  for (int trial = 0; trial < kTrials; ++trial) {
    Tensor logits = draw.normal({5, 9});
    spoil(logits, draw, GetParam());
    const Tensor labels = draw.ids({5}, 9);
    expect_same_elements([&] {
      const LossResult result = compute_loss(Loss::softmax_cross_entropy, logits, labels, 5);
      return Tensors{result.total, result.dy};
    });
  }
}

// A product over a block of keys may spread a NaN to rows that the causal mask shields from it,
// because a masked probability is 0 and 0 * NaN is NaN. PyTorch does so too.
TEST_P(Nan, IsNotHiddenByAttention) {
  Draw draw(fresh_seed());
  for (int trial = 0; trial < kTrials; ++trial) {
    Tensor qkv = draw.normal({2, 9, 24});
    const Tensor dy = draw.normal({2, 9, 8});
    spoil(qkv, draw, GetParam());
    for (const bool causal : {false, true})
      expect_none_hidden([&] {
        const Heads heads{2, causal};
        const ops::Attended out = ops::attention(qkv, heads);
        return Tensors{out.y, ops::attention_backward(qkv, out, dy, heads)};
      });
  }
}

INSTANTIATE_TEST_SUITE_P(Values, Nan, testing::Values(kNaN, kInfinity, -kInfinity));

}  // namespace
}  // namespace howmany
