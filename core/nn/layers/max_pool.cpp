// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class MaxPool final : public Layer {
 public:
  explicit MaxPool(Window window) : window_(window) {}

  Tensor forward(const Tensor& x, Tape& tape) override {
    ops::Pooled out = ops::max_pool(x, window_);
    if (tape.training()) {
      tape.push_shape(x.shape());
      tape.push(out.chosen);
    }
    return out.y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Tensor chosen = tape.pop();
    return ops::max_pool_backward(chosen, dy, window_, tape.pop_shape());
  }
  Shape output_shape(const Shape& x) const override {
    return ops::pool_shape("max_pool", x, window_);
  }
  std::string describe() const override {
    return fmt::format("max_pool({}x{}, stride {}, padding {})", window_.size, window_.size,
                       window_.stride, window_.padding);
  }
  LayerPtr clone() const override { return max_pool(window_); }

 private:
  Window window_;
};

}  // namespace

LayerPtr max_pool(Window window) { return std::make_unique<MaxPool>(window); }

}  // namespace howmany::layers
