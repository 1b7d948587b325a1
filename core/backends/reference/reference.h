// SPDX-License-Identifier: Apache-2.0
// The reference backend: every operation as plain loops that define its meaning. Supports f32 and
// f64, and accumulates in f64. Tests compare other backends and all gradients with it. Private to
// core/backends.
#pragma once

#include "core/backends/backend.h"
#include "core/base/error.h"

namespace howmany::backends {

class Reference final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  bool supports(Dtype dtype) const override { return dtype == Dtype::f32 || dtype == Dtype::f64; }

  // dense.cpp
  void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, bool accumulate,
              Tensor& y) const override;
  void linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
              Tensor& y) const override;
  void linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept, const Tensor& dy,
                       Activation act, Tensor& dx, GradOut& dw, GradOut& dbias) const override;
  void embedding(const Tensor& ids, const Tensor& table, int64_t first, Tensor& y) const override;
  void embedding_backward(const Tensor& ids, const Tensor& dy, int64_t first,
                          GradOut& dtable) const override;

  // elementwise.cpp
  void activation(const Tensor& x, Activation act, Tensor& y) const override;
  void activation_backward(const Tensor& kept, const Tensor& dy, Activation act,
                           Tensor& dx) const override;
  void add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const override;
  void swiglu(const Tensor& x, Tensor& y) const override;
  void swiglu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) const override;
  void dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const override;
  void axpy(double alpha, const Tensor& x, Tensor& y) const override;

  // window.cpp
  void conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, Window window,
              Tensor& y) const override;
  void conv2d_backward(const Tensor& x, const Tensor& w, const Tensor& dy, Window window,
                       Tensor& dx, GradOut& dw, GradOut& dbias) const override;
  void max_pool(const Tensor& x, Window window, Tensor& chosen, Tensor& y) const override;
  void max_pool_backward(const Tensor& chosen, const Tensor& dy, Window window,
                         Tensor& dx) const override;
  void avg_pool(const Tensor& x, Window window, Tensor& y) const override;
  void avg_pool_backward(const Tensor& dy, Window window, Tensor& dx) const override;

  // norm.cpp
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

  // attention.cpp
  void attention(const Tensor& qkv, Heads heads, Tensor& lse, Tensor& y) const override;
  void attention_backward(const Tensor& qkv, const Tensor& y, const Tensor& lse, const Tensor& dy,
                          Heads heads, Tensor& dqkv) const override;

  // rotary.cpp
  void rotary(const Tensor& x, const Tensor& angles, GroupedHeads heads, Tensor& y) const override;
  void rotary_backward(const Tensor& dy, const Tensor& angles, GroupedHeads heads,
                       Tensor& dx) const override;

  // train.cpp
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
};

// Calls f(float{}) or f(double{}), according to the dtype.
template <typename F>
void by_type(const Tensor& t, F&& f) {
  if (t.dtype() == Dtype::f32)
    f(float{});
  else if (t.dtype() == Dtype::f64)
    f(double{});
  else
    throw Error(fmt::format("[reference] {} is not supported", name_of(t.dtype())));
}

using Doubles = std::vector<double>;
inline Doubles zeros(int64_t n) { return Doubles(static_cast<size_t>(n)); }

template <typename T>
void store(const Doubles& from, Tensor& to) {
  T* out = to.mutable_data<T>();
  for (size_t i = 0; i < from.size(); ++i) out[i] = static_cast<T>(from[i]);
}

// Overwrites or adds to the gradient. Does nothing if the gradient is absent.
template <typename T>
void store(const Doubles& from, GradOut& to) {
  if (!to.value) return;
  T* out = to.value.mutable_data<T>();
  for (size_t i = 0; i < from.size(); ++i)
    out[i] = static_cast<T>(to.accumulate ? static_cast<double>(out[i]) + from[i] : from[i]);
}

double activate(double x, Activation act);
// Returns the derivative. `kept` is x for gelu, else y.
double activation_slope(double kept, Activation act);

}  // namespace howmany::backends
