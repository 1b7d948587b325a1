// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

namespace howmany::onednn {
namespace {

[[gnu::always_inline]] inline float sigmoid(float x) {
  const float e = exp_of(-std::abs(x));
  return (x < 0 ? e : 1.0F) / (1 + e);
}

HM_SIMD void gated(const float* __restrict gate, const float* __restrict value, int64_t n,
                   float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] * sigmoid(gate[i]) * value[i];
}

HM_SIMD void gated_backward(const float* __restrict gate, const float* __restrict value,
                            const float* __restrict dy, int64_t n, float* __restrict dgate,
                            float* __restrict dvalue) {
  for (int64_t i = 0; i < n; ++i) {
    const float s = sigmoid(gate[i]), silu = gate[i] * s;
    dgate[i] = dy[i] * value[i] * (s + silu * (1 - s));
    dvalue[i] = dy[i] * silu;
  }
}

}  // namespace

void OneDnn::swiglu(const Tensor& x, Tensor& y) const {
  const int64_t width = y.shape()[-1];
  if (width == 0) return;
  const float* in = x.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(y.numel() / width, width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* const gate = in + 2 * row * width;
      gated(gate, gate + width, width, out + row * width);
    }
  });
}

void OneDnn::swiglu_backward(const Tensor& x, const Tensor& dy, Tensor& dx) const {
  const int64_t width = dy.shape()[-1];
  if (width == 0) return;
  const float *in = x.data<float>(), *d = dy.data<float>();
  float* out = dx.mutable_data<float>();
  parallel_for(dy.numel() / width, width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = 2 * row * width;
      gated_backward(in + at, in + at + width, d + row * width, width, out + at, out + at + width);
    }
  });
}

}  // namespace howmany::onednn
