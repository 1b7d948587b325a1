// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "core/backends/reference/reference.h"
#include "core/tensor/rng.h"

namespace howmany::backends {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

std::unique_ptr<Backend> reference() { return std::make_unique<Reference>(); }

double activate(double x, Activation act) {
  switch (act) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? 0 : x;  // a NaN stays a NaN
    case Activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

double activation_slope(double kept, Activation act) {
  switch (act) {
    case Activation::none:
      return 1;
    case Activation::relu:
      return kept > 0 ? 1 : 0;
    case Activation::gelu: {
      const double density =
          std::exp(-0.5 * kept * kept) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
      return 0.5 * (1 + std::erf(kept / std::numbers::sqrt2)) + kept * density;
    }
    case Activation::tanh:
      return 1 - kept * kept;
  }
  return 1;
}

void Reference::activation(const Tensor& x, Activation act, Tensor& y) const {
  by_type(x, [&]<typename T>(T) {
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = static_cast<T>(activate(in[i], act));
  });
}

void Reference::activation_backward(const Tensor& kept, const Tensor& dy, Activation act,
                                    Tensor& dx) const {
  by_type(dy, [&]<typename T>(T) {
    const T *k = kept.data<T>(), *d = dy.data<T>();
    T* out = dx.mutable_data<T>();
    for (int64_t i = 0; i < dy.numel(); ++i)
      out[i] = static_cast<T>(d[i] * activation_slope(k[i], act));
  });
}

void Reference::add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const {
  by_type(a, [&]<typename T>(T) {
    const T *left = a.data<T>(), *right = b.data<T>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < a.numel(); ++i)
      out[i] = static_cast<T>(activate(double{left[i]} + double{right[i]}, act));
  });
}

void Reference::swiglu(const Tensor& x, Tensor& y) const {
  const int64_t width = y.shape()[-1];
  by_type(x, [&]<typename T>(T) {
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < y.numel(); ++i) {
      const T* const gate = x.data<T>() + i / width * 2 * width + i % width;
      out[i] = static_cast<T>(double{gate[0]} * sigmoid(gate[0]) * gate[width]);
    }
  });
}

void Reference::swiglu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) const {
  const int64_t width = dy.shape()[-1];
  by_type(x, [&]<typename T>(T) {
    const T* d = dy.data<T>();
    for (int64_t i = 0; i < dy.numel(); ++i) {
      const int64_t at = i / width * 2 * width + i % width;
      const double g = x.data<T>()[at], v = x.data<T>()[at + width], s = sigmoid(g);
      dx.mutable_data<T>()[at] = static_cast<T>(d[i] * v * (s + g * s * (1 - s)));
      dx.mutable_data<T>()[at + width] = static_cast<T>(d[i] * g * s);
    }
  });
}

void Reference::dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const {
  const Rng rng(key.drawn(), key.stream);
  by_type(x, [&]<typename T>(T) {
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const bool drop = rng.bits(static_cast<uint64_t>(key.first_element + i)) < p * 0x1p32;
      out[i] = drop ? T{0} : static_cast<T>(in[i] / (1 - p));
    }
  });
}

void Reference::axpy(double alpha, const Tensor& x, Tensor& y) const {
  by_type(x, [&]<typename T>(T) {
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = static_cast<T>(out[i] + alpha * in[i]);
  });
}

}  // namespace howmany::backends
