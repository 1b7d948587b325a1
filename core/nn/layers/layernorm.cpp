// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers/norm.h"

namespace howmany::layers {
namespace {

class LayerNorm final : public Norm {
 public:
  LayerNorm(int64_t width, double epsilon) : Norm("layernorm", width), epsilon_(epsilon) {
    HM_REQUIRE(epsilon > 0, "[layernorm] epsilon {}", epsilon);
  }

  std::string describe() const override { return fmt::format("layernorm({})", channels()); }
  LayerPtr clone() const override { return layernorm(channels(), epsilon_); }
  bool is_per_position() const override { return true; }

 private:
  ops::Normalized normalize(const Tensor& x, Tape&) override {
    return ops::layernorm(x, scale().value, shift().value, epsilon_);
  }
  Tensor gradient(const Tensor& x, const ops::Normalized& kept, const Tensor& dy, Tape&) override {
    return ops::layernorm_backward(x, scale().value, kept, dy, grad_out(scale()),
                                   grad_out(shift()));
  }

  double epsilon_;
};

}  // namespace

LayerPtr layernorm(int64_t width, double epsilon) {
  return std::make_unique<LayerNorm>(width, epsilon);
}

}  // namespace howmany::layers
