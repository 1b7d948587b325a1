// SPDX-License-Identifier: Apache-2.0
#include "core/backends/meta.h"

#include "core/backends/meta_kernels.h"

namespace howmany {
namespace {

// With bf16 activations, kernels of GPUs keep a copy of each weight in bf16.
void keep_half(const Tensor& x, const Tensor& w) {
  if (x.dtype() != Dtype::bf16 || w.dtype() == Dtype::bf16 || w.attachment()) return;
  w.set_attachment(std::make_shared<Tensor>(Tensor::empty(w.shape(), Dtype::bf16, w.device())));
}

// As the kernels of GPUs.
class Meta final : public MetaKernels {
 public:
  void linear(const Tensor& x, const Tensor& w, const Tensor&, Activation, Tensor&) const override {
    keep_half(x, w);
  }
  void conv2d(const Tensor& x, const Tensor& w, const Tensor&, Window, Tensor&) const override {
    keep_half(x, w);
  }
};

}  // namespace

const Backend& meta_backend() {
  static const Meta instance;
  return instance;
}

}  // namespace howmany
