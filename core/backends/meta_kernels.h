// SPDX-License-Identifier: Apache-2.0
// Kernels that compute nothing, for tensors on meta devices. Derive from it to allocate what real
// kernels keep. Private to core/backends. Thread-safe.
#pragma once

#include "core/backends/backend.h"

namespace howmany {

class MetaKernels : public Backend {
 public:
  std::string_view name() const override { return "meta"; }
  DeviceType device_type() const override { return DeviceType::meta; }
  bool supports(Dtype) const override { return true; }

  void matmul(const Tensor&, bool, const Tensor&, bool, bool, Tensor&) const override {}
  void linear(const Tensor&, const Tensor&, const Tensor&, Activation, Tensor&) const override {}
  void linear_backward(const Tensor&, const Tensor&, const Tensor&, const Tensor&, Activation,
                       Tensor&, GradOut&, GradOut&) const override {}
  void conv2d(const Tensor&, const Tensor&, const Tensor&, Window, Tensor&) const override {}
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
  // The change of a value makes copies of it void.
  void sgd(std::span<SgdParam> params, const SgdArgs&) const override {
    for (SgdParam& p : params) p.value.mutable_raw();
  }
  void adam(std::span<AdamParam> params, const AdamArgs&) const override {
    for (AdamParam& p : params) p.value.mutable_raw();
  }
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

}  // namespace howmany
