// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// BERT's segment embedding for samples of one segment: adds row 0 of a table of `count` rows to
// every token of x [N,T,width].
class Segment final : public Layer {
 public:
  Segment(int64_t count, int64_t width, double deviation)
      : count_(count),
        width_(width),
        params_{Param{.name = "weight",
                      .shape = {count, width},
                      .init = {Init::normal, deviation},
                      .rounded = true}} {
    HM_REQUIRE(count > 0 && width > 0, "[segment] {} rows of {}", count, width);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    const Shape shape = output_shape(x.shape());
    const Tensor ids = zeros_for(shape, x.device());
    if (tape.training()) {
      tape.used(table());
      tape.push(ids);
    }
    return ops::add(x, ops::embedding(ids, table().value));
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    ops::embedding_backward(tape.pop(), dy, grad_out(table()));
    tape.done(table());
    return dy;
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() == 3 && x[2] == width_, "[segment] x has shape {}, expected [N,T,{}]",
               x.str(), width_);
    return x;
  }
  double forward_flop(const Shape& x) const override { return static_cast<double>(x.numel()); }
  std::string describe() const override { return fmt::format("segment({}, {})", count_, width_); }
  LayerPtr clone() const override { return segment(count_, width_, params_[0].init.value); }
  std::span<Param> own_params() override { return params_; }

 private:
  // Cached, as in position().
  Tensor zeros_for(const Shape& x, Device device) {
    const bool fit =
        ids_ && ids_.device() == device && ids_.shape()[0] >= x[0] && ids_.shape()[1] == x[1];
    if (!fit) ids_ = Tensor::zeros({x[0], x[1]}, Dtype::i64).to(device);
    return ids_.rows(0, x[0]);
  }
  Param& table() { return params_[0]; }

  int64_t count_, width_;
  std::array<Param, 1> params_;
  Tensor ids_;
};

}  // namespace

LayerPtr segment(int64_t count, int64_t width, double deviation) {
  return std::make_unique<Segment>(count, width, deviation);
}

}  // namespace howmany::layers
