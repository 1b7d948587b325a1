// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

namespace howmany::onednn {
namespace {

HM_SIMD void normalize_row(const float* __restrict x, const float* __restrict scale,
                           const float* __restrict shift, double epsilon, int64_t width,
                           float* mean, float* inv_std, float* __restrict y) {
  float sum = 0, left = 0, square = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < width; ++c) sum += x[c];
  const float m = sum / static_cast<float>(width);
#pragma omp simd reduction(+ : left, square)
  for (int64_t c = 0; c < width; ++c) {
    const float off = x[c] - m;
    left += off;
    square += off * off;
  }
  // Corrects the rounding error of the mean: the corrected two-pass algorithm of Chan, Golub and
  // LeVeque (1983).
  const float rest = left / static_cast<float>(width);
  const double variance = static_cast<double>(square) / static_cast<double>(width) -
                          static_cast<double>(rest) * static_cast<double>(rest);
  const auto inv = static_cast<float>(1 / std::sqrt(variance + epsilon));
  for (int64_t c = 0; c < width; ++c) y[c] = (x[c] - m - rest) * inv * scale[c] + shift[c];
  *mean = m + rest;
  *inv_std = inv;
}

HM_SIMD void backward_row(const float* __restrict x, const float* __restrict scale,
                          const float* __restrict dy, float mean, float inv, int64_t width,
                          float* __restrict dx, float* __restrict dscale,
                          float* __restrict dshift) {
  float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
  for (int64_t c = 0; c < width; ++c) {
    const float xhat = (x[c] - mean) * inv, d = dy[c] * scale[c];
    sum += d;
    dot += d * xhat;
  }
  sum /= static_cast<float>(width);
  dot /= static_cast<float>(width);
  for (int64_t c = 0; c < width; ++c) {
    const float xhat = (x[c] - mean) * inv;
    dx[c] = inv * (dy[c] * scale[c] - sum - xhat * dot);
    dscale[c] += dy[c] * xhat;
    dshift[c] += dy[c];
  }
}

}  // namespace

void OneDnn::layernorm(const Tensor& x, const Tensor& scale, const Tensor& shift, double epsilon,
                       Tensor& mean, Tensor& inv_std, Tensor& y) const {
  const int64_t width = scale.numel();
  const float *in = x.data<float>(), *scales = scale.data<float>(), *shifts = shift.data<float>();
  float *means = mean.mutable_data<float>(), *invs = inv_std.mutable_data<float>(),
        *out = y.mutable_data<float>();
  parallel_for(mean.numel(), width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      normalize_row(in + row * width, scales, shifts, epsilon, width, means + row, invs + row,
                    out + row * width);
  });
}

void OneDnn::layernorm_backward(const Tensor& x, const Tensor& scale, const Tensor& dy,
                                const Tensor& mean, const Tensor& inv_std, Tensor& dx,
                                GradOut& dscale, GradOut& dshift) const {
  const int64_t width = scale.numel();
  const float *in = x.data<float>(), *scales = scale.data<float>(), *d = dy.data<float>(),
              *means = mean.data<float>(), *invs = inv_std.data<float>();
  float* out = dx.mutable_data<float>();
  const std::vector<double> sums =
      column_sums<2>(mean.numel(), width, [&](int64_t begin, int64_t end, float* sum) {
        for (int64_t row = begin; row < end; ++row)
          backward_row(in + row * width, scales, d + row * width, means[row], invs[row], width,
                       out + row * width, sum, sum + width);
      });
  const std::span<const double> all(sums);
  store(dscale, all.first(static_cast<size_t>(width)));
  store(dshift, all.last(static_cast<size_t>(width)));
}

}  // namespace howmany::onednn
