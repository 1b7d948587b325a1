// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Zhang and Sennrich, "Root mean square layer normalization" (2019); torch.nn.RMSNorm.
class RmsNorm final : public Layer {
 public:
  RmsNorm(int64_t width, double epsilon)
      : width_(width),
        epsilon_(epsilon),
        params_{Param{.name = "weight", .shape = {width}, .init = {Init::constant, 1}}} {
    HM_REQUIRE(width > 0 && epsilon > 0, "[rmsnorm] width {}, epsilon {}", width, epsilon);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    const ops::RmsNormalized out = ops::rmsnorm(x, scale().value, epsilon_);
    if (!tape.training()) return out.y;
    tape.used(scale());
    tape.push(x);
    tape.push(out.inv_rms);
    return out.y;
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor inv_rms = tape.pop(), x = tape.pop();
    Tensor dx = ops::rmsnorm_backward(x, scale().value, inv_rms, dy, grad_out(scale()));
    tape.done(scale());
    return dx;
  }

  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() >= 2 && x[-1] == width_, "[rmsnorm] x has shape {}, expected [N,..,{}]",
               x.str(), width_);
    return x;
  }
  double forward_flop(const Shape& x) const override { return 4 * static_cast<double>(x.numel()); }
  std::string describe() const override { return fmt::format("rmsnorm({})", width_); }
  LayerPtr clone() const override { return rmsnorm(width_, epsilon_); }
  std::span<Param> own_params() override { return params_; }
  bool is_per_position() const override { return true; }

 private:
  Param& scale() { return params_[0]; }

  int64_t width_;
  double epsilon_;
  std::array<Param, 1> params_;
};

}  // namespace

LayerPtr rmsnorm(int64_t width, double epsilon) {
  return std::make_unique<RmsNorm>(width, epsilon);
}

}  // namespace howmany::layers
