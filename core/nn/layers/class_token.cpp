// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "core/base/error.h"
#include "core/nn/layers.h"
#include "core/ops/ops.h"
#include "core/tensor/id_range.h"

namespace howmany::layers {
namespace {

// Puts a learned row before those of each sample: x [N,..,width] -> y [N,1+T,width], where T is the
// product of the extents between (Devlin et al. 2018; Dosovitskiy et al. 2020).
class ClassToken final : public Layer {
 public:
  explicit ClassToken(int64_t width)
      : width_(width), params_{Param{.name = "weight", .shape = {1, width}, .rounded = true}} {
    HM_REQUIRE(width > 0, "[class_token] width {}", width);
  }

  Tensor forward(const Tensor& x, Tape& tape) override {
    const int64_t samples = x.shape()[0], rest = x.shape().row_numel();
    const Tensor first = ops::embedding(zeros(samples, x.device()), params_[0].value).to(x.dtype());
    Tensor y = Tensor::empty(output_shape(x.shape()), x.dtype(), x.device());
    y.copy_columns(0, first, 0, width_);
    y.copy_columns(width_, x, 0, rest);
    if (tape.training()) {
      tape.used(params_[0]);
      tape.push_shape(x.shape());
    }
    return y;
  }
  Tensor backward(const Tensor& dy, Tape& tape) override {
    const Shape shape = tape.pop_shape();
    Tensor dx = Tensor::empty(shape, dy.dtype(), dy.device());
    Tensor rows = Tensor::empty({shape[0], width_}, dy.dtype(), dy.device());
    rows.copy_columns(0, dy, 0, width_);
    dx.copy_columns(0, dy, width_, shape.row_numel());
    ops::embedding_backward(zeros(shape[0], dy.device()), rows, grad_out(params_[0]));
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
  // The id of the learned row, once per sample.
  static Tensor zeros(int64_t count, Device device) {
    const Tensor ids = Tensor::zeros({count}, Dtype::i64, device);
    remember_range(ids, {0, 0});
    return ids;
  }

  int64_t width_;
  std::array<Param, 1> params_;
};

}  // namespace

LayerPtr class_token(int64_t width) { return std::make_unique<ClassToken>(width); }

}  // namespace howmany::layers
