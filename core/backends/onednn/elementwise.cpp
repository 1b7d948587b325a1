#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"
#include "core/backends/onednn/primitives.h"
#include "core/rng.h"

namespace howmany::onednn {
namespace {

// x and y may be one.
HM_SIMD void relu(const float* x, int64_t n, float* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i];  // a NaN stays one
}

HM_SIMD void relu_backward(const float* __restrict y, const float* __restrict dy, int64_t n,
                           float* __restrict dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
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

struct GeluKey {
  int64_t n;
  int threads;
  auto operator<=>(const GeluKey&) const = default;
};

// erf as oneDNN's kernels have it.
struct Gelu {
  explicit Gelu(const GeluKey& key) {
    constexpr auto kErf = dnnl::algorithm::eltwise_gelu_erf;
    const Desc desc = f32_desc({key.n}, FormatTag::a);
    const dnnl::eltwise_forward::primitive_desc forward_desc(
        {dnnl::prop_kind::forward_training, kErf, desc}, attributes(), engine());
    forward = Kernel(forward_desc);
    backward = Kernel(dnnl::eltwise_backward::primitive_desc({kErf, desc, desc}, attributes(),
                                                             engine(), forward_desc));
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
  parallel_for(n, 1,
               [&](int64_t begin, int64_t end) { relu(in + begin, end - begin, out + begin); });
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
  parallel_for(n, 1, [&](int64_t begin, int64_t end) {
    relu_backward(y + begin, d + begin, end - begin, out + begin);
  });
}

void OneDnn::add(const Tensor& a, const Tensor& b, Activation act, Tensor& y) const {
  const float *left = a.data<float>(), *right = b.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(a.numel(), 1, [&](int64_t begin, int64_t end) {
    sum(left + begin, right + begin, act == Activation::relu, end - begin, out + begin);
  });
}

void OneDnn::axpy(double alpha, const Tensor& x, Tensor& y) const {
  const float* in = x.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(x.numel(), 1, [&](int64_t begin, int64_t end) {
    add_multiple(static_cast<float>(alpha), in + begin, end - begin, out + begin);
  });
}

// Philox gives four values a call; the first and last call of a range may be used in part.
void OneDnn::dropout(const Tensor& x, double p, DropoutKey key, Tensor& y) const {
  const Rng rng(key.seed, key.stream);
  const double bound = p * 0x1p32;
  const auto scale = static_cast<float>(1 / (1 - p));
  const float* in = x.data<float>();
  float* out = y.mutable_data<float>();
  parallel_for(x.numel(), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const auto draw = static_cast<uint64_t>(key.first_element + i);
      const std::array<uint32_t, 4> four = rng.bits4(draw / 4);
      for (size_t k = draw % 4; k < 4 && i < end; ++k, ++i)
        out[i] = four[k] < bound ? 0 : in[i] * scale;
    }
  });
}

}  // namespace howmany::onednn
