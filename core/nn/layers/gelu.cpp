// SPDX-License-Identifier: Apache-2.0
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class Gelu final : public Layer {
 public:
  Tensor forward(const Tensor& x, Tape& tape) override {
    if (tape.training()) tape.push(x);
    return ops::activation(x, Activation::gelu);
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor x = tape.pop();
    return tape.wants_grad(x) ? ops::activation_backward(x, dy, Activation::gelu) : Tensor();
  }
  Shape output_shape(const Shape& x) const override { return x; }
  std::string describe() const override { return "gelu()"; }
  LayerPtr clone() const override { return gelu(); }
  bool can_cut(int place) const override { return place == Cut::between; }
  LayerPtr cut(const Cut&) const override { return clone(); }
};

}  // namespace

LayerPtr gelu() { return std::make_unique<Gelu>(); }

}  // namespace howmany::layers
