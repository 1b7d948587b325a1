// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class Conv2d final : public Layer {
 public:
  Conv2d(int64_t in, int64_t out, Window window, bool bias) : in_(in), out_(out), window_(window) {
    HM_REQUIRE(in > 0 && out > 0, "[conv2d] channels {} -> {}", in, out);
    HM_REQUIRE(window.size >= 1 && window.stride >= 1 && window.padding >= 0,
               "[conv2d] window size {}, stride {}, padding {}", window.size, window.stride,
               window.padding);
    // The initialization of torch.nn.Conv2d.
    const double fan_in = static_cast<double>(in * window.size * window.size);
    const Init init{Init::uniform, 1 / std::sqrt(fan_in)};
    params_.push_back({.name = "weight",
                       .shape = {out, window.size, window.size, in},
                       .init = init,
                       .rounded = true});
    if (bias) params_.push_back({.name = "bias", .shape = {out}, .init = init});
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    if (tape.training()) {
      for (Param& p : params_) tape.used(p);
      tape.push(x);
    }
    const Tensor bias = params_.size() > 1 ? params_[1].value : Tensor();
    return ops::conv2d(x, params_[0].value, bias, window_);
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor x = tape.pop();
    Tensor dx = ops::conv2d_backward(x, params_[0].value, dy, window_, tape.wants_grad(x),
                                     grad_out(params_[0]),
                                     params_.size() > 1 ? grad_out(params_[1]) : GradOut{});
    for (Param& p : params_) tape.done(p);
    return dx;
  }

  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() == 4 && x[3] == in_, "[conv2d] x has shape {}, expected [N,H,W,{}]",
               x.str(), in_);
    return ops::conv2d_shape(x, out_, window_);
  }
  double forward_flop(const Shape& x) const override {
    return 2 * static_cast<double>(output_shape(x).numel()) *
           static_cast<double>(params_[0].shape.row_numel());
  }
  std::string describe() const override {
    return fmt::format("conv2d({}, {}, {}x{}, stride {}, padding {}{})", in_, out_, window_.size,
                       window_.size, window_.stride, window_.padding,
                       params_.size() > 1 ? "" : ", no bias");
  }
  LayerPtr clone() const override {
    auto copy = std::make_unique<Conv2d>(in_, out_, window_, params_.size() > 1);
    for (size_t i = 0; i < params_.size(); ++i) copy->params_[i].init = params_[i].init;
    return copy;
  }
  std::span<Param> own_params() override { return params_; }

 private:
  int64_t in_, out_;
  Window window_;
  std::vector<Param> params_;
};

}  // namespace

LayerPtr conv2d(int64_t in, int64_t out, Window window, bool bias) {
  return std::make_unique<Conv2d>(in, out, window, bias);
}

}  // namespace howmany::layers
