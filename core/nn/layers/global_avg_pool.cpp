// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// x [N,S,S,C] -> y [N,C]: an average pool whose window is the whole image.
class GlobalAvgPool final : public Layer {
 public:
  Tensor forward(const Tensor& x, Tape& tape) override {
    const Shape shape = output_shape(x.shape());
    Tensor y = ops::avg_pool(x, whole(x.shape())).view(shape);
    if (tape.training()) tape.push_shape(x.shape());
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Shape x = tape.pop_shape();
    return ops::avg_pool_backward(dy.view({x[0], 1, 1, x[3]}), whole(x), x);
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() == 4 && x[1] == x[2] && x[1] > 0,
               "[global_avg_pool] x has shape {}, expected square images [N,S,S,C]", x.str());
    return {x[0], x[3]};
  }
  std::string describe() const override { return "global_avg_pool()"; }
  LayerPtr clone() const override { return global_avg_pool(); }

 private:
  static Window whole(const Shape& x) { return {.size = x[1], .stride = x[1]}; }
};

}  // namespace

LayerPtr global_avg_pool() { return std::make_unique<GlobalAvgPool>(); }

}  // namespace howmany::layers
