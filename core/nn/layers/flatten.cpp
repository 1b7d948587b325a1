// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"

namespace howmany::layers {
namespace {

// x [N,..] -> y [N,rest], a view.
class Flatten final : public Layer {
 public:
  Tensor forward(const Tensor& x, Tape& tape) override {
    Tensor y = x.view(output_shape(x.shape()));
    if (tape.training()) tape.push_shape(x.shape());
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Shape x = tape.pop_shape();
    return dy ? dy.view(x) : dy;
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() >= 1, "[flatten] x is a scalar");
    return {x[0], x.row_numel()};
  }
  std::string describe() const override { return "flatten()"; }
  LayerPtr clone() const override { return flatten(); }
};

}  // namespace

LayerPtr flatten() { return std::make_unique<Flatten>(); }

}  // namespace howmany::layers
