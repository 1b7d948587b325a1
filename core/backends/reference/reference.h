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

#include "core/backends/kernels.inc"
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
