// SPDX-License-Identifier: Apache-2.0
// The oneDNN backend: f32 on CPU, and bf16 inputs of products. Operations are defined by kind in
// matmul.cpp, conv.cpp, batchnorm.cpp, ... Memory-bound operations are our own loops (loops.h); the
// rest are cached primitives (primitives.h). Private to this folder.
#pragma once

#include "core/backends/backend.h"

namespace howmany::onednn {

class OneDnn : public Backend {
 public:
  std::string_view name() const override { return "onednn"; }
  std::string version() const override;
  DeviceType device_type() const override { return DeviceType::cpu; }
  bool supports(Dtype dtype) const override { return dtype == Dtype::f32; }
  // bf16 if this CPU multiplies it and ONEDNN_MAX_CPU_ISA allows it.
  bool computes_in(Precision precision) const override;
  const Backend* on_meta() const override;

  void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, bool accumulate,
              Tensor& y) const override;
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
              Tensor& y) const override;
  void linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept, const Tensor& dy,
                       Activation act, Tensor& dx, GradOut& dw, GradOut& dbias) const override;

  void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
              Tensor& y) const override;
  void conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                       Tensor& dx, GradOut& dw, GradOut& dbias) const override;

  void activation(const Tensor& x, Activation act, Tensor& y) const override;
  void activation_backward(const Tensor& kept, const Tensor& dy, Activation act,
                           Tensor& dx) const override;
  void add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const override;

  void batchnorm(const Tensor& x, const Tensor& scale, const Tensor& shift, Activation act,
                 BatchNormState& state, Tensor& mean, Tensor& inv_std, Tensor& y) const override;
  void batchnorm_inference(const Tensor& x, const Tensor& scale, const Tensor& shift,
                           Activation act, const BatchNormState& state, Tensor& y) const override;
  void batchnorm_moments(const Tensor& x, Tensor& mean, Tensor& variance) const override;
  void batchnorm_backward_sums(const BatchNormBackward& in, Tensor& dots,
                               Tensor& sums) const override;
  void batchnorm_backward_input(const BatchNormBackward& in, const Tensor& dots, const Tensor& sums,
                                double rows, Tensor& dx) const override;
  void layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
                 Tensor& mean, Tensor& inv_std, Tensor& y) const override;
  void layernorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                          const Tensor& mean, const Tensor& inv_std, Tensor& dx, GradOut& dscale,
                          GradOut& dshift) const override;
  void groupnorm(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& shift,
                 double epsilon, Tensor& mean, Tensor& inv_std, Tensor& y) const override;
  void groupnorm_backward(const Tensor& x, int64_t groups, const Tensor& scale, const Tensor& dy,
                          const Tensor& mean, const Tensor& inv_std, Tensor& dx, GradOut& dscale,
                          GradOut& dshift) const override;
  void rmsnorm(const Tensor& x, const Tensor& scale, double epsilon, Tensor& inv_rms,
               Tensor& y) const override;
  void rmsnorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                        const Tensor& inv_rms, Tensor& dx, GradOut& dscale) const override;

  void swiglu(const Tensor& x, Tensor& y) const override;
  void swiglu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) const override;
  void rotary(const Tensor& x, const Tensor& angles, GroupedHeads heads, Tensor& y) const override;
  void rotary_backward(const Tensor& dy, const Tensor& angles, GroupedHeads heads,
                       Tensor& dx) const override;

  void attention(const Tensor& qkv, Heads heads, Tensor& lse, Tensor& y) const override;
  void attention_backward(const Tensor& qkv, const Tensor& y, const Tensor& lse, const Tensor& dy,
                          Heads heads, Tensor& dqkv) const override;

  void max_pool(const Tensor& x, Window window, Tensor& chosen, Tensor& y) const override;
  void max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window,
                         Tensor& dx) const override;
  void avg_pool(const Tensor& x, Window window, Tensor& y) const override;
  void avg_pool_backward(const Tensor& dy, Window window, Tensor& dx) const override;

  void embedding(const Tensor& ids, const Tensor& table, int64_t first, Tensor& y) const override;
  void embedding_backward(const Tensor& ids, const Tensor& dy, int64_t first,
                          GradOut& dtable) const override;
  void dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const override;

  Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double denominator,
                               Tensor& dlogits) const override;
  void cross_entropy_part(const Tensor& logits, const Tensor& labels, int64_t first,
                          Tensor& part) const override;
  Tensor cross_entropy_of_parts(const Tensor& logits, const Tensor& labels, int64_t first,
                                const Tensor& all, double denominator,
                                Tensor& dlogits) const override;
  Tensor mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const override;

  void sgd(std::span<SgdParam> params, const SgdArgs& args) const override;
  void adam(std::span<AdamParam> params, const AdamArgs& args) const override;
  void axpy(double alpha, const Tensor& x, Tensor& y) const override;
};

}  // namespace howmany::onednn
