// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class Residual final : public Layer {
 public:
  Residual(LayerPtr main, LayerPtr shortcut, Activation act)
      : main_(std::move(main)), shortcut_(std::move(shortcut)), act_(act) {
    HM_REQUIRE(main_, "[residual] main is null");
    HM_REQUIRE(act != Activation::gelu, "[residual] gelu does not fuse with the sum");
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    output_shape(x.shape());
    const Tensor main = main_->forward(x, tape);
    Tensor y = ops::add(main, shortcut_ ? shortcut_->forward(x, tape) : x, act_);
    if (tape.training() && act_ != Activation::none) tape.push(y);
    return y;
  }

  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor d = act_ == Activation::none ? dy : ops::activation_backward(tape.pop(), dy, act_);
    const Tensor through_shortcut = shortcut_ ? shortcut_->backward(d, tape) : d;
    const Tensor through_main = main_->backward(d, tape);
    if (!through_shortcut || !through_main) return {};  // x is the tape's input
    return ops::add(through_main, through_shortcut);
  }

  Shape output_shape(const Shape& x) const override {
    const Shape main = main_->output_shape(x);
    const Shape shortcut = shortcut_ ? shortcut_->output_shape(x) : x;
    HM_REQUIRE(main == shortcut, "[residual] main gives {}, the shortcut {}", main.str(),
               shortcut.str());
    return main;
  }
  double forward_flop(const Shape& x) const override {
    return main_->forward_flop(x) + (shortcut_ ? shortcut_->forward_flop(x) : 0) +
           static_cast<double>(output_shape(x).numel());
  }
  std::string describe() const override {
    return fmt::format("residual({}, {})", main_->describe(),
                       shortcut_ ? shortcut_->describe() : "identity");
  }
  LayerPtr clone() const override {
    return residual(main_->clone(), shortcut_ ? shortcut_->clone() : nullptr, act_);
  }
  std::vector<Child> children() override {
    std::vector<Child> list{{"", main_.get()}};
    if (shortcut_) list.push_back({"downsample", shortcut_.get()});
    return list;
  }
  LayerPtr with_children(std::vector<LayerPtr> others) const override {
    return residual(std::move(others[0]), shortcut_ ? std::move(others[1]) : nullptr, act_);
  }

 private:
  LayerPtr main_, shortcut_;
  Activation act_;
};

}  // namespace

LayerPtr residual(LayerPtr main, LayerPtr shortcut, Activation act) {
  return std::make_unique<Residual>(std::move(main), std::move(shortcut), act);
}

}  // namespace howmany::layers
