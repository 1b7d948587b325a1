// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class Activated final : public Layer {
 public:
  explicit Activated(Activation act) : act_(act) {}

  Tensor forward(const Tensor& x, Tape& tape) override {
    Tensor y = ops::activation(x, act_);
    if (tape.training()) tape.push(act_ == Activation::gelu ? x : y);
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor kept = tape.pop();
    if (act_ == Activation::gelu && !tape.wants_grad(kept)) return {};
    return ops::activation_backward(kept, dy, act_);
  }
  Shape output_shape(const Shape& x) const override { return x; }
  std::string describe() const override { return fmt::format("{}()", name_of(act_)); }
  LayerPtr clone() const override { return std::make_unique<Activated>(act_); }
  bool can_cut(int place) const override { return place == Cut::between; }
  LayerPtr cut(const Cut&) const override { return clone(); }

 private:
  const Activation act_;
};

}  // namespace

LayerPtr relu() { return std::make_unique<Activated>(Activation::relu); }
LayerPtr gelu() { return std::make_unique<Activated>(Activation::gelu); }

}  // namespace howmany::layers
