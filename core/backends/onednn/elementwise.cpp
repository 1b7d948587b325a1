// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"
#include "core/backends/onednn/version.h"
#include "core/tensor/rng.h"

namespace howmany::onednn {
namespace {

// x and y may be the same buffer.
HM_SIMD void relu(const float* x, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i];  // a NaN stays a NaN
}

HM_SIMD void relu_backward(const float* __restrict y, const float* __restrict dy, int64_t n,
                           float* __restrict dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

// Does not use oneDNN's kernel, because a NaN must stay a NaN.
void tanh_of(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

HM_SIMD void tanh_backward(const float* __restrict y, const float* __restrict dy, int64_t n,
                           float* __restrict dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = (1 - y[i] * y[i]) * dy[i];
}

HM_SIMD void sum(const float* __restrict a, const float* __restrict b, bool relu, int64_t n,
                 float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) {
    const float z = a[i] + b[i];
    y[i] = relu && z < 0 ? 0 : z;
  }
}

HM_SIMD void add_multiple(float alpha, const float* __restrict x, int64_t n, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += alpha * x[i];
}

HM_SIMD void draw_bits(const Rng rng, uint64_t block, int64_t blocks, uint32_t* __restrict bits) {
  for (int64_t b = 0; b < blocks; ++b) {
    const std::array<uint32_t, 4> four = rng.bits4(block + static_cast<uint64_t>(b));
    for (size_t k = 0; k < 4; ++k) bits[4 * static_cast<size_t>(b) + k] = four[k];
  }
}

HM_SIMD void keep_some(const float* __restrict x, const uint32_t* __restrict draws, uint64_t limit,
                       float scale, int64_t n, float* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] = draws[i] < limit ? 0 : x[i] * scale;
}

struct GeluKey {
  int64_t n;
  int threads;
  auto operator<=>(const GeluKey&) const = default;
};

// The exact (erf) form, by oneDNN.
struct Gelu {
  explicit Gelu(const GeluKey& key) {
    constexpr auto kErf = dnnl::algorithm::eltwise_gelu_erf;
    const Desc desc = f32_desc({key.n}, FormatTag::a);
    const auto described = describe_eltwise(kErf, desc);
    forward = Kernel(described);
    backward = Kernel(describe_eltwise_backward(described, kErf, desc));
  }
  Kernel forward, backward;
};

const Gelu& gelu_of(int64_t n) { return cached<Gelu>(GeluKey{n, omp_get_max_threads()}); }

}  // namespace

void OneDnn::activation(const Tensor& x, Activation act, Tensor& y) const {
  const int64_t n = x.numel();
  if (n == 0) return;
  if (act == Activation::none) return y.copy_from(x);
  if (act == Activation::gelu)
    return gelu_of(n).forward.run({{DNNL_ARG_SRC, x.raw()}, {DNNL_ARG_DST, y.mutable_raw()}});
  const float* in = x.data<float>();
  float* out = y.mutable_data<float>();
  const auto apply = act == Activation::tanh ? tanh_of : relu;
  parallel_for(n, 1,
               [&](int64_t begin, int64_t end) { apply(in + begin, end - begin, out + begin); });
}

void OneDnn::activation_backward(const Tensor& kept, const Tensor& dy, Activation act,
                                 Tensor& dx) const {
  const int64_t n = dy.numel();
  if (n == 0) return;
  if (act == Activation::none) return dx.copy_from(dy);
  if (act == Activation::gelu)
    return gelu_of(n).backward.run({{DNNL_ARG_SRC, kept.raw()},
                                    {DNNL_ARG_DIFF_DST, dy.raw()},
                                    {DNNL_ARG_DIFF_SRC, dx.mutable_raw()}});
  const float *y = kept.data<float>(), *d = dy.data<float>();
  float* out = dx.mutable_data<float>();
  const auto apply = act == Activation::tanh ? tanh_backward : relu_backward;
  parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    apply(y + begin, d + begin, end - begin, out + begin);
  });
}

void OneDnn::add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const {
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(a.numel(), 1, [&](int64_t begin, int64_t end) {
    sum(left + begin, right + begin, act == Activation::relu, end - begin, out + begin);
  });
  if (act == Activation::tanh) activation(y, act, y);
}

void OneDnn::axpy(double alpha, const Tensor& x, Tensor& y) const {
  const float* in = x.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(x.numel(), 1, [&](int64_t begin, int64_t end) {
    add_multiple(static_cast<float>(alpha), in + begin, end - begin, out + begin);
  });
}

// Generates random values in chunks. Philox generates four at a time, of which the first and last
// group of a range may be used in part.
void OneDnn::dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const {
  const Rng rng(key.drawn(), key.stream);
  const auto limit = static_cast<uint64_t>(std::ceil(p * 0x1p32));
  const auto scale = static_cast<float>(1 / (1 - p));
  const float* in = x.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(x.numel(), 4, [&](int64_t begin, int64_t end) {
    std::array<uint32_t, 1024> draws;
    for (int64_t i = begin; i < end;) {
      const auto draw = static_cast<uint64_t>(key.first_element + i);
      const auto skip = static_cast<int64_t>(draw % 4);
      const int64_t n = std::min<int64_t>(end - i, std::ssize(draws) - skip);
      draw_bits(rng, draw / 4, (skip + n + 3) / 4, draws.data());
      keep_some(in + i, draws.data() + skip, limit, scale, n, out + i);
      i += n;
    }
  });
}

}  // namespace howmany::onednn
