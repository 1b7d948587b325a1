// SPDX-License-Identifier: Apache-2.0
#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

namespace howmany::onednn {
namespace {

HM_SIMD void rotate(const float* __restrict x, const float* __restrict cosines, int64_t half,
                    float* __restrict y) {
  const float* const sines = cosines + half;
  for (int64_t c = 0; c < half; ++c) {
    y[c] = x[c] * cosines[c] - x[half + c] * sines[c];
    y[half + c] = x[half + c] * cosines[c] + x[c] * sines[c];
  }
}

// In place.
HM_SIMD void rotate_back(float* __restrict x, const float* __restrict cosines, int64_t half) {
  const float* const sines = cosines + half;
  for (int64_t c = 0; c < half; ++c) {
    const float a = x[c], b = x[half + c];
    x[c] = a * cosines[c] + b * sines[c];
    x[half + c] = b * cosines[c] - a * sines[c];
  }
}

// Writes the sum of `count` adjacent heads.
HM_SIMD void sum_of_heads(const float* __restrict heads, int64_t count, int64_t size,
                          float* __restrict sum) {
  std::copy_n(heads, size, sum);
  for (int64_t h = 1; h < count; ++h)
    for (int64_t c = 0; c < size; ++c) sum[c] += heads[h * size + c];
}

// The rows of x and of y.
struct Rows {
  Rows(const Tensor& angles, GroupedHeads h)
      : size(angles.shape()[1]),
        group(h.count / h.kv),
        heads(h),
        x((h.count + 2 * h.kv) * size),
        y(3 * h.count * size) {}

  void forward(const float* in, const float* angles, float* out) const {
    for (int64_t h = 0; h < heads.count; ++h)
      rotate(in + h * size, angles, size / 2, out + h * size);
    const float *const k = in + heads.count * size, *const v = k + heads.kv * size;
    float *const k_out = out + heads.count * size, *const v_out = k_out + heads.count * size;
    for (int64_t h = 0; h < heads.count; ++h) {
      rotate(k + h / group * size, angles, size / 2, k_out + h * size);
      std::copy_n(v + h / group * size, size, v_out + h * size);
    }
  }

  void backward(const float* in, const float* angles, float* out) const {
    std::copy_n(in, heads.count * size, out);
    const float *const k = in + heads.count * size, *const v = k + heads.count * size;
    float *const k_out = out + heads.count * size, *const v_out = k_out + heads.kv * size;
    for (int64_t h = 0; h < heads.kv; ++h) {
      sum_of_heads(k + h * group * size, group, size, k_out + h * size);
      sum_of_heads(v + h * group * size, group, size, v_out + h * size);
    }
    for (int64_t h = 0; h < heads.count + heads.kv; ++h)
      rotate_back(out + h * size, angles, size / 2);
  }

  int64_t size, group;
  GroupedHeads heads;
  int64_t x, y;  // their widths
};

}  // namespace

void OneDnn::rotary(const Tensor& x, const Tensor& angles, GroupedHeads heads, Tensor& y) const {
  const Rows rows(angles, heads);
  const int64_t times = x.shape()[1];
  const float *in = x.data<float>(), *table = angles.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(x.shape()[0] * times, rows.y, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      rows.forward(in + row * rows.x, table + row % times * rows.size, out + row * rows.y);
  });
}

void OneDnn::rotary_backward(const Tensor& dy, const Tensor& angles, GroupedHeads heads,
                             Tensor& dx) const {
  const Rows rows(angles, heads);
  const int64_t times = dy.shape()[1];
  const float *in = dy.data<float>(), *table = angles.data<float>();
  float* out = dx.mutable_data<float>();
  parallel_for(dy.shape()[0] * times, rows.y, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      rows.backward(in + row * rows.y, table + row % times * rows.size, out + row * rows.x);
  });
}

}  // namespace howmany::onednn
