// SPDX-License-Identifier: Apache-2.0
#include "core/nn/cut.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class Relu final : public Layer {
 public:
  Tensor forward(const Tensor& x, Tape& tape) override {
    Tensor y = ops::activation(x, Activation::relu);
    if (tape.training()) tape.push(y);
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    return ops::activation_backward(tape.pop(), dy, Activation::relu);
  }
  Shape output_shape(const Shape& x) const override { return x; }
  std::string describe() const override { return "relu()"; }
  LayerPtr clone() const override { return relu(); }
  bool can_cut(int place) const override { return place == Cut::between; }
  LayerPtr cut(const Cut&) const override { return clone(); }
};

}  // namespace

LayerPtr relu() { return std::make_unique<Relu>(); }

}  // namespace howmany::layers
