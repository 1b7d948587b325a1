// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Rotary position embedding (Su et al. 2021) in the form of Hugging Face's Llama: channels c and
// c + size / 2 of each head of q and k are rotated by t base^(-2 c / size). x [N,T,(count + 2 kv)
// size] -> [N,T,3 count size], the input of attention, in which the heads of k and v are repeated.
class RotaryEmbedding final : public Layer {
 public:
  RotaryEmbedding(GroupedHeads heads, double base) : heads_(heads), base_(base) {
    HM_REQUIRE(heads.kv > 0 && heads.count > 0 && heads.count % heads.kv == 0 && base > 0,
               "[rotary] {} heads with {} of keys and values, base {}", heads.count, heads.kv,
               base);
  }

  Tensor forward(const Tensor& x, Tape&) override {
    const Shape y = output_shape(x.shape());
    return ops::rotary(x, angles_for(y, x), heads_);
  }
  Tensor backward(const Tensor& dy, Tape&) override {
    return ops::rotary_backward(dy, angles_for(dy.shape(), dy), heads_);
  }
  Shape output_shape(const Shape& x) const override {
    const int64_t all = heads_.count + 2 * heads_.kv;
    HM_REQUIRE(x.rank() == 3 && x[2] > 0 && x[2] % (2 * all) == 0,
               "[rotary] x has shape {}, expected [N,T,{} heads of an even size]", x.str(), all);
    return {x[0], x[1], x[2] / all * 3 * heads_.count};
  }
  double forward_flop(const Shape& x) const override { return 3 * static_cast<double>(x.numel()); }
  std::string describe() const override {
    return fmt::format("rotary({} heads, {} of keys and values)", heads_.count, heads_.kv);
  }
  LayerPtr clone() const override { return rotary(heads_, base_); }
  bool can_cut(int place) const override { return place == Cut::between; }
  LayerPtr cut(const Cut& cut) const override {
    HM_REQUIRE(heads_.kv % cut.count == 0,
               "[rotary] {} heads of keys and values cannot be divided over {} ranks: take {}",
               heads_.kv, cut.count, nearest_divisor(heads_.kv, cut.count));
    return rotary({heads_.count / cut.count, heads_.kv / cut.count}, base_);
  }
  std::vector<int64_t> input_blocks() const override {
    return {heads_.count, heads_.kv, heads_.kv};
  }

 private:
  // Cached, as in position(). `y`: a shape of the output.
  Tensor angles_for(const Shape& y, const Tensor& like) {
    const Dtype dtype = beside(like.dtype());
    const int64_t size = y[2] / (3 * heads_.count);
    const bool fit = angles_ && angles_.device() == like.device() && angles_.dtype() == dtype &&
                     angles_.shape() == Shape{y[1], size};
    if (!fit && like.device().type == DeviceType::meta)
      angles_ = Tensor::empty({y[1], size}, dtype, like.device());
    else if (!fit)
      angles_ = angles_of(y[1], size).to(dtype).to(like.device());
    return angles_;
  }
  Tensor angles_of(int64_t times, int64_t size) const {
    Tensor angles = Tensor::empty({times, size}, Dtype::f64);
    double* at = angles.mutable_data<double>();
    const int64_t pairs = size / 2;
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const double of_one =
          std::pow(base_, -2 * static_cast<double>(pair) / static_cast<double>(size));
      for (int64_t t = 0; t < times; ++t) {
        const double angle = static_cast<double>(t) * of_one;
        at[t * size + pair] = std::cos(angle);
        at[t * size + pairs + pair] = std::sin(angle);
      }
    }
    return angles;
  }

  GroupedHeads heads_;
  double base_;
  Tensor angles_;
};

}  // namespace

LayerPtr rotary(GroupedHeads heads, double base) {
  return std::make_unique<RotaryEmbedding>(heads, base);
}

}  // namespace howmany::layers
