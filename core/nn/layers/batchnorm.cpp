// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class BatchNorm final : public Layer {
 public:
  BatchNorm(int64_t channels, Activation act)
      : channels_(channels),
        act_(act),
        params_{Param{.name = "weight", .shape = {channels}, .init = {Init::constant, 1}},
                Param{.name = "bias", .shape = {channels}},
                Param{.name = "running_mean", .shape = {channels}, .trainable = false},
                Param{.name = "running_var",
                      .shape = {channels},
                      .init = {Init::constant, 1},
                      .trainable = false}} {
    HM_REQUIRE(channels > 0, "[batchnorm] {} channels", channels);
    HM_REQUIRE(act == Activation::none || act == Activation::relu,
               "[batchnorm] {} does not fuse with it", name_of(act));
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    BatchNormState state{.running_mean = params_[2].value, .running_var = params_[3].value};
    if (!tape.training())
      return ops::batchnorm_inference(x, scale().value, shift().value, act_, state);
    if (tape.options().again)  // the first forward has updated them
      state = {state.running_mean.clone(), state.running_var.clone()};
    const ops::Normalized out =
        ops::batchnorm(x, scale().value, shift().value, act_, state, tape.options().sum_statistics);
    tape.used(scale());
    tape.used(shift());
    tape.push(x);
    if (act_ != Activation::none) tape.push(out.y);
    tape.push(out.mean);
    tape.push(out.inv_std);
    return out.y;
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::Normalized kept;
    kept.inv_std = tape.pop();
    kept.mean = tape.pop();
    if (act_ != Activation::none) kept.y = tape.pop();
    const Tensor x = tape.pop();
    Tensor dx =
        ops::batchnorm_backward(x, scale().value, shift().value, kept, dy, act_, grad_out(scale()),
                                grad_out(shift()), tape.options().sum_statistics);
    tape.done(scale());
    tape.done(shift());
    return dx;
  }

  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() >= 2 && x[-1] == channels_,
               "[batchnorm] x has shape {}, expected [N,..,{}]", x.str(), channels_);
    return x;
  }
  double forward_flop(const Shape& x) const override { return 8 * static_cast<double>(x.numel()); }
  std::string describe() const override {
    return act_ == Activation::none ? fmt::format("batchnorm({})", channels_)
                                    : fmt::format("batchnorm({}, {})", channels_, name_of(act_));
  }
  LayerPtr clone() const override { return batchnorm(channels_, act_); }
  std::span<Param> own_params() override { return params_; }

 private:
  Param& scale() { return params_[0]; }
  Param& shift() { return params_[1]; }

  int64_t channels_;
  Activation act_;
  std::array<Param, 4> params_;
};

}  // namespace

LayerPtr batchnorm(int64_t channels, Activation act) {
  return std::make_unique<BatchNorm>(channels, act);
}

}  // namespace howmany::layers
