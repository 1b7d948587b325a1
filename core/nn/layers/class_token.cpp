// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"

namespace howmany::layers {
namespace {

// Puts a learned row before those of each sample: x [N,..,width] -> y [N,1+T,width], where T is the
// product of the extents between (Devlin et al. 2018; Dosovitskiy et al. 2020).
class ClassToken final : public Layer {
 public:
  explicit ClassToken(int64_t width)
      : width_(width), params_{Param{.name = "weight", .shape = {1, width}}} {
    HM_REQUIRE(width > 0, "[class_token] width {}", width);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    Tensor y = Tensor::empty(output_shape(x.shape()), x.dtype(), x.device());
    const Tensor row = params_[0].value.to(x.dtype()).flat(0, width_);
    const int64_t rest = x.shape().row_numel();
    for (int64_t n = 0; n < x.shape()[0]; ++n) {
      const int64_t begin = n * (width_ + rest), end = begin + width_;
      y.flat(begin, end).copy_from(row);
      y.flat(end, end + rest).copy_from(x.flat(n * rest, (n + 1) * rest));
    }
    if (tape.training()) {
      tape.used(params_[0]);
      tape.push_shape(x.shape());
    }
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Shape shape = tape.pop_shape();
    Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
    const Tensor rows = Tensor::empty({shape[0], width_}, dy.dtype(), dy.device());
    const int64_t rest = shape.row_numel();
    for (int64_t n = 0; n < shape[0]; ++n) {
      const int64_t begin = n * (width_ + rest), end = begin + width_;
      rows.flat(n * width_, (n + 1) * width_).copy_from(dy.flat(begin, end));
      dx.flat(n * rest, (n + 1) * rest).copy_from(dy.flat(end, end + rest));
    }
    const Tensor first = Tensor::zeros({shape[0]}, Dtype::i64, dy.device());
    ops::embedding_backward(first, rows, grad_out(params_[0]));
    tape.done(params_[0]);
    return dx;
  }
  Shape output_shape(const Shape& x) const override {
    HM_REQUIRE(x.rank() >= 3 && x[-1] == width_, "[class_token] x has shape {}, expected [N,..,{}]",
               x.str(), width_);
    return {x[0], 1 + x.row_numel() / width_, width_};
  }
  std::string describe() const override { return fmt::format("class_token({})", width_); }
  LayerPtr clone() const override { return class_token(width_); }
  std::span<Param> own_params() override { return params_; }

 private:
  int64_t width_;
  std::array<Param, 1> params_;
};

}  // namespace

LayerPtr class_token(int64_t width) { return std::make_unique<ClassToken>(width); }

}  // namespace howmany::layers
