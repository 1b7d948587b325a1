// SPDX-License-Identifier: Apache-2.0
#include "core/backends/meta.h"

#include "core/backends/backend.h"

namespace howmany {
namespace {

// With bf16 activations, kernels of GPUs keep a copy of each weight in bf16.
void keep_half(const Tensor& x, const Tensor& w) {
  if (x.dtype() != Dtype::bf16 || w.dtype() == Dtype::bf16 || w.attachment()) return;
  w.set_attachment(std::make_shared<Tensor>(Tensor::empty(w.shape(), Dtype::bf16, w.device())));
}

class Meta final : public Backend {
 public:
  std::string_view name() const override { return "meta"; }
  DeviceType device_type() const override { return DeviceType::meta; }
  bool supports(Dtype) const override { return true; }

  void matmul(const Tensor&, bool, const Tensor&, bool, bool, Tensor&) const override {}
  void linear(const Tensor& x, const Tensor& w, const Tensor&, Activation, Tensor&) const override {
    keep_half(x, w);
  }
  void linear_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation,
                       Tensor&, GradOut&, GradOut&) const override {}
  void conv2d(const Tensor& x, const Tensor& w, const Tensor&, Window, Tensor&) const override {
    keep_half(x, w);
  }
  void conv2d_backward(const Tensor&, const Tensor&, const Tensor&, Window, Tensor&, GradOut&,
                       GradOut&) const override {}
  void activation(const Tensor&, Activation, Tensor&) const override {}
  void activation_backward(const Tensor&, const Tensor&, Activation, Tensor&) const override {}
  void add(const Tensor&, const Tensor&, Activation, Tensor&) const override {}
  void layernorm(const Tensor&, const Tensor&, const Tensor&, double, Tensor&, Tensor&,
                 Tensor&) const override {}
  void layernorm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                          Tensor&, GradOut&, GradOut&) const override {}
  void groupnorm(const Tensor&, int64_t, const Tensor&, const Tensor&, double, Tensor&, Tensor&,
                 Tensor&) const override {}
  void groupnorm_backward(const Tensor&, int64_t, const Tensor&, const Tensor&, const Tensor&,
                          const Tensor&, Tensor&, GradOut&, GradOut&) const override {}
  void rmsnorm(const Tensor&, const Tensor&, double, Tensor&, Tensor&) const override {}
  void rmsnorm_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Tensor&,
                        GradOut&) const override {}
  void swiglu(const Tensor&, Tensor&) const override {}
  void swiglu_backward(const Tensor&, const Tensor&, Tensor&) const override {}
  void rotary(const Tensor&, const Tensor&, GroupedHeads, Tensor&) const override {}
  void rotary_backward(const Tensor&, const Tensor&, GroupedHeads, Tensor&) const override {}
  void attention(const Tensor&, Heads, Tensor&, Tensor&) const override {}
  void attention_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Heads,
                          Tensor&) const override {}
  void max_pool(const Tensor&, Window, Tensor&, Tensor&) const override {}
  void max_pool_backward(const Tensor&, const Tensor&, Window, Tensor&) const override {}
  void avg_pool(const Tensor&, Window, Tensor&) const override {}
  void avg_pool_backward(const Tensor&, Window, Tensor&) const override {}
  void embedding(const Tensor&, const Tensor&, int64_t, Tensor&) const override {}
  void embedding_backward(const Tensor&, const Tensor&, int64_t, GradOut&) const override {}
  void dropout(const Tensor&, double, DropoutKey, Tensor&) const override {}
  Tensor softmax_cross_entropy(const Tensor& logits, const Tensor&, double,
                               Tensor&) const override {
    return Tensor::empty({1}, Dtype::f64, logits.device());
  }
  void cross_entropy_part(const Tensor&, const Tensor&, int64_t, Tensor&) const override {}
  Tensor cross_entropy_of_parts(const Tensor& logits, const Tensor&, int64_t, const Tensor&, double,
                                Tensor&) const override {
    return Tensor::empty({1}, Dtype::f64, logits.device());
  }
  Tensor mse(const Tensor& y, const Tensor&, double, Tensor&) const override {
    return Tensor::empty({1}, Dtype::f64, y.device());
  }
  void sgd(std::span<SgdParam>, const SgdArgs&) const override {}
  void adam(std::span<AdamParam>, const AdamArgs&) const override {}
  void axpy(double, const Tensor&, Tensor&) const override {}

  void batchnorm(const Tensor&, const Tensor&, const Tensor&, Activation, BatchNormState&, Tensor&,
                 Tensor&, Tensor&) const override {}
  void batchnorm_inference(const Tensor&, const Tensor&, const Tensor&, Activation,
                           const BatchNormState&, Tensor&) const override {}
  void batchnorm_moments(const Tensor&, Tensor&, Tensor&) const override {}
  void batchnorm_backward_sums(const BatchNormBackward&, Tensor&, Tensor&) const override {}
  void batchnorm_backward_input(const BatchNormBackward&, const Tensor&, const Tensor&, double,
                                Tensor&) const override {}
  void batchnorm_send_moments(const Tensor&, const Tensor&, double, Tensor&) const override {}
  void batchnorm_receive_moments(const Tensor&, BatchNormState&, Tensor&, Tensor&,
                                 Tensor&) const override {}
  void batchnorm_send_sums(const Tensor&, const Tensor&, double, Tensor&) const override {}
  void batchnorm_receive_sums(const Tensor&, Tensor&, Tensor&) const override {}
};

}  // namespace

const Backend& meta_backend() {
  static const Meta instance;
  return instance;
}

}  // namespace howmany
