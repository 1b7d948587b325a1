// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"

namespace howmany::layers {
namespace {

// Takes the first row of each sample: x [N,T,width] -> y [N,width].
class FirstToken final : public Layer {
 public:
  Tensor forward(const Tensor& x, Tape& tape) override {
    const Shape shape = output_shape(x.shape());
    Tensor y = Tensor::empty(shape, x.dtype(), x.device());
    y.copy_columns(0, x, 0, shape[1]);
    if (tape.training()) tape.push_shape(x.shape());
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    Tensor dx = Tensor::zeros(tape.pop_shape(), dy.dtype(), dy.device());
    dx.copy_columns(0, dy, 0, dy.shape()[1]);
    return dx;
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() == 3 && x[1] > 0, "[first_token] x has shape {}, expected [N,T,width]",
               x.str());
    return {x[0], x[2]};
  }
  std::string describe() const override { return "first_token()"; }
  LayerPtr clone() const override { return first_token(); }
};

}  // namespace

LayerPtr first_token() { return std::make_unique<FirstToken>(); }

}  // namespace howmany::layers
