// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

namespace howmany::onednn {
namespace {

// Returns 1 / sqrt(mean of squares + epsilon).
HM_SIMD float normalize_rms(const float* __restrict x, const float* __restrict scale,
                            double epsilon, int64_t width, float* __restrict y) {
  float square = 0;
#pragma omp simd reduction(+ : square)
  for (int64_t c = 0; c < width; ++c) square += x[c] * x[c];
  const double mean = static_cast<double>(square) / static_cast<double>(width);
  const auto inv = static_cast<float>(1 / std::sqrt(mean + epsilon));
  for (int64_t c = 0; c < width; ++c) y[c] = x[c] * inv * scale[c];
  return inv;
}

HM_SIMD void rms_backward_row(const float* __restrict x, const float* __restrict scale,
                              const float* __restrict dy, float inv, int64_t width,
                              float* __restrict dx, float* __restrict dscale) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t c = 0; c < width; ++c) dot += dy[c] * scale[c] * x[c];
  const float carried = dot * inv * inv / static_cast<float>(width);
  for (int64_t c = 0; c < width; ++c) {
    dx[c] = inv * (dy[c] * scale[c] - x[c] * carried);
    dscale[c] += dy[c] * x[c] * inv;
  }
}

}  // namespace

void OneDnn::rmsnorm(const Tensor& x, const Tensor& scale, double epsilon, Tensor& inv_rms,
                     Tensor& y) const {
  const int64_t width = scale.numel();
  const float *in = x.data<float>(), *scales = scale.data<float>();
  float *invs = inv_rms.mutable_data<float>(), *out = y.mutable_data<float>();
  parallel_for(inv_rms.numel(), width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      invs[row] = normalize_rms(in + row * width, scales, epsilon, width, out + row * width);
  });
}

void OneDnn::rmsnorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                              const Tensor& inv_rms, Tensor& dx, GradOut& dscale) const {
  const int64_t width = scale.numel();
  const float *in = x.data<float>(), *scales = scale.data<float>(), *d = dy.data<float>(),
              *invs = inv_rms.data<float>();
  float* out = dx.mutable_data<float>();
  store(dscale, column_sums<1>(inv_rms.numel(), width, [&](int64_t begin, int64_t end, float* sum) {
          for (int64_t row = begin; row < end; ++row)
            rms_backward_row(in + row * width, scales, d + row * width, invs[row], width,
                             out + row * width, sum);
        }));
}

}  // namespace howmany::onednn
