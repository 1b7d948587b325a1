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
    for (int64_t n = 0; n < shape[0]; ++n) row(y, n).copy_from(first(x, n));
    if (tape.training()) tape.push_shape(x.shape());
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    Tensor dx = Tensor::zeros(tape.pop_shape(), dy.dtype(), dy.device());
    for (int64_t n = 0; n < dy.shape()[0]; ++n) first(dx, n).copy_from(row(dy, n));
    return dx;
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() == 3 && x[1] > 0, "[first_token] x has shape {}, expected [N,T,width]",
               x.str());
    return {x[0], x[2]};
  }
  std::string describe() const override { return "first_token()"; }
  LayerPtr clone() const override { return first_token(); }

 private:
  static Tensor row(const Tensor& y, int64_t n) {
    const int64_t width = y.shape()[1];
    return y.flat(n * width, (n + 1) * width);
  }
  static Tensor first(const Tensor& x, int64_t n) {
    const int64_t begin = n * x.shape().row_numel();
    return x.flat(begin, begin + x.shape()[2]);
  }
};

}  // namespace

LayerPtr first_token() { return std::make_unique<FirstToken>(); }

}  // namespace howmany::layers
