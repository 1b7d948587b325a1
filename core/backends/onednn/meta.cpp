// SPDX-License-Identifier: Apache-2.0
// The memory of OneDnn's kernels, on meta devices. The others allocate nothing that counts.
#include "core/backends/meta_kernels.h"
#include "core/backends/onednn/onednn.h"
#include "core/backends/onednn/products.h"

namespace howmany::onednn {
namespace {

class OneDnnOnMeta final : public MetaKernels {
 public:
  bool supports(Dtype dtype) const override { return dtype == Dtype::f32; }

  void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, bool accumulate,
              Tensor& y) const override {
    product({a, transpose_a}, {b, transpose_b}, {}, accumulate, y);
  }
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation,
              Tensor& y) const override {
    product({x}, {.t = w, .transpose = true, .is_weight = true}, bias, false, y);
  }
  void linear_backward(const Tensor& x, const Tensor& w, const Tensor&, const Tensor& dy,
                       Activation act, Tensor& dx, GradOut& dw, GradOut&) const override {
    Tensor dz = dy;
    if (act != Activation::none) dz = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
    linear_gradients(x, w, dz, dx, dw);
  }
  void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
              Tensor& y) const override {
    if (y.numel() > 0) convolution(x, w, bias, window, y);
  }
  void conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                       Tensor& dx, GradOut& dw, GradOut&) const override {
    if (dy.numel() > 0 && x.numel() > 0) convolution_backward(x, w, dy, window, dx, dw);
  }
};

}  // namespace

const Backend* OneDnn::on_meta() const {
  static const OneDnnOnMeta instance;
  return &instance;
}

}  // namespace howmany::onednn
