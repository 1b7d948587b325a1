// SPDX-License-Identifier: Apache-2.0
#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

class AvgPool final : public Layer {
 public:
  explicit AvgPool(Window window) : window_(window) {}

  Tensor forward(const Tensor& x, Tape& tape) override {
    Tensor y = ops::avg_pool(x, window_);
    if (tape.training()) tape.push_shape(x.shape());
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    return ops::avg_pool_backward(dy, window_, tape.pop_shape());
  }
  Shape output_shape(const Shape& x) const override {
    return ops::pool_shape("avg_pool", x, window_);
  }
  std::string describe() const override {
    return fmt::format("avg_pool({}x{}, stride {}, padding {})", window_.size, window_.size,
                       window_.stride, window_.padding);
  }
  LayerPtr clone() const override { return avg_pool(window_); }

 private:
  Window window_;
};

}  // namespace

LayerPtr avg_pool(Window window) { return std::make_unique<AvgPool>(window); }

}  // namespace howmany::layers
