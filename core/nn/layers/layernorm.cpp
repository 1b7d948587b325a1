// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class LayerNorm final : public Layer {
 public:
  LayerNorm(int64_t width, double epsilon)
      : width_(width),
        epsilon_(epsilon),
        params_{Param{.name = "weight", .shape = {width}, .init = {Init::constant, 1}},
                Param{.name = "bias", .shape = {width}}} {
    HM_REQUIRE(width > 0 && epsilon > 0, "[layernorm] width {}, epsilon {}", width, epsilon);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    const ops::Normalized out = ops::layernorm(x, scale().value, shift().value, epsilon_);
    if (!tape.training()) return out.y;
    tape.used(scale());
    tape.used(shift());
    tape.push(x);
    tape.push(out.mean);
    tape.push(out.inv_std);
    return out.y;
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::Normalized kept;
    kept.inv_std = tape.pop();
    kept.mean = tape.pop();
    const Tensor x = tape.pop();
    Tensor dx =
        ops::layernorm_backward(x, scale().value, kept, dy, grad_out(scale()), grad_out(shift()));
    tape.done(scale());
    tape.done(shift());
    return dx;
  }

  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() >= 2 && x[-1] == width_, "[layernorm] x has shape {}, expected [N,..,{}]",
               x.str(), width_);
    return x;
  }
  double forward_flop(const Shape& x) const override { return 8 * static_cast<double>(x.numel()); }
  std::string describe() const override { return fmt::format("layernorm({})", width_); }
  LayerPtr clone() const override { return layernorm(width_, epsilon_); }
  std::span<Param> own_params() override { return params_; }
  bool is_per_position() const override { return true; }

 private:
  Param& scale() { return params_[0]; }
  Param& shift() { return params_[1]; }

  int64_t width_;
  double epsilon_;
  std::array<Param, 2> params_;
};

}  // namespace

LayerPtr layernorm(int64_t width, double epsilon) {
  return std::make_unique<LayerNorm>(width, epsilon);
}

}  // namespace howmany::layers
