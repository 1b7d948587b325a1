// SPDX-License-Identifier: Apache-2.0
#include "core/nn/layers/norm.h"

namespace howmany::layers {
namespace {

class BatchNorm final : public Norm {
 public:
  BatchNorm(int64_t channels, Activation act) : Norm("batchnorm", channels), act_(act) {
    HM_REQUIRE(act == Activation::none || act == Activation::relu,
               "[batchnorm] {} does not fuse with it", name_of(act));
    params_.push_back({.name = "running_mean", .shape = {channels}, .trainable = false});
    params_.push_back({.name = "running_var",
                       .shape = {channels},
                       .init = {Init::constant, 1},
                       .trainable = false});
  }

  std::string describe() const override {
    return act_ == Activation::none ? fmt::format("batchnorm({})", channels())
                                    : fmt::format("batchnorm({}, {})", channels(), name_of(act_));
  }
  LayerPtr clone() const override { return batchnorm(channels(), act_); }

 private:
  ops::Normalized normalize(const Tensor& x, Tape& tape) override {
    BatchNormState state{.running_mean = params_[2].value, .running_var = params_[3].value};
    if (!tape.training())
      return {ops::batchnorm_inference(x, scale().value, shift().value, act_, state), {}, {}};
    if (tape.options().again)  // the first forward has updated them
      state = {state.running_mean.clone(), state.running_var.clone()};
    return ops::batchnorm(x, scale().value, shift().value, act_, state,
                          tape.options().sum_statistics);
  }
  Tensor gradient(const Tensor& x, const ops::Normalized& kept, const Tensor& dy,
                  Tape& tape) override {
    return ops::batchnorm_backward(x, scale().value, shift().value, kept, dy, act_,
                                   grad_out(scale()), grad_out(shift()),
                                   tape.options().sum_statistics);
  }
  bool keeps_output() const override { return act_ != Activation::none; }

  Activation act_;
};

}  // namespace

LayerPtr batchnorm(int64_t channels, Activation act) {
  return std::make_unique<BatchNorm>(channels, act);
}

}  // namespace howmany::layers
