// SPDX-License-Identifier: Apache-2.0
#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"
#include "core/backends/onednn/products.h"
#include "core/backends/onednn/version.h"
#include "core/base/error.h"

namespace howmany::onednn {
namespace {

struct MatmulKey {
  int64_t m, n, k;
  bool transpose_b, bias;
  int threads;
  auto operator<=>(const MatmulKey&) const = default;
};

Kernel make_matmul(const MatmulKey& key) {
  const Desc a = f32_desc({key.m, key.k}, FormatTag::ab);
  const Desc b = f32_desc({key.k, key.n}, key.transpose_b ? FormatTag::ba : FormatTag::ab);
  const Desc y = f32_desc({key.m, key.n}, FormatTag::ab);
  const Desc bias = key.bias ? f32_desc({1, key.n}, FormatTag::ab) : Desc();
  return Kernel(describe<dnnl::matmul>(a, b, bias, y));
}

struct Matmul {
  explicit Matmul(const MatmulKey& key) : kernel(make_matmul(key)) {}
  Kernel kernel;
};

// Supports any transposition and accumulation. The matmul primitive is no faster here, and sgemm
// needs no primitive per shape.
void general_product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                     bool accumulate, Tensor& y) {
  const int64_t m = y.shape()[0], n = y.shape()[1], k = a.shape()[transpose_a ? 0 : 1];
  const dnnl_status_t status = dnnl_sgemm(
      transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, 1, a.data<float>(), a.shape()[1],
      b.data<float>(), b.shape()[1], accumulate ? 1.0F : 0.0F, y.mutable_data<float>(), n);
  HM_ENSURE(status == dnnl_success,
            "[matmul] oneDNN sgemm failed with status {}: [{},{}] x [{},{}]",
            static_cast<int>(status), m, k, k, n);
}

HM_SIMD void relu_backward_rows(const float* __restrict y, const float* __restrict dy, int64_t rows,
                                int64_t columns, float* __restrict dz, float* __restrict sum) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < columns; ++c) {
      const float d = y[row * columns + c] > 0 ? dy[row * columns + c] : 0;
      dz[row * columns + c] = d;
      sum[c] += d;
    }
}

}  // namespace

void product(const Tensor& a, const Tensor& b, bool transpose_b, const Tensor& bias, Tensor& y) {
  const MatmulKey key{y.shape()[0], y.shape()[1], a.shape()[1],
                      transpose_b,  bool(bias),   omp_get_max_threads()};
  cached<Matmul>(key).kernel.run({{DNNL_ARG_SRC, a.raw()},
                                  {DNNL_ARG_WEIGHTS, b.raw()},
                                  {DNNL_ARG_BIAS, bias ? bias.raw() : nullptr},
                                  {DNNL_ARG_DST, y.mutable_raw()}},
                                 y.device());
}

void OneDnn::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                    bool accumulate, Tensor& y) const {
  if (y.numel() == 0) return;
  if (a.numel() == 0) {  // an empty sum
    if (!accumulate) y.zero();
  } else if (transpose_a || accumulate) {
    general_product(a, transpose_a, b, transpose_b, accumulate, y);
  } else {
    product(a, b, transpose_b, {}, y);
  }
}

void OneDnn::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
                    Tensor& y) const {
  if (y.numel() == 0) return;
  product(x, w, true, bias, y);
  // Not a post-op: oneDNN's relu converts a NaN to zero, which would hide a failed training run.
  if (act != Activation::none) activation(y, act, y);
}

void OneDnn::linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept, const Tensor& dy,
                             Activation act, Tensor& dx, GradOut& dw, GradOut& dbias) const {
  const int64_t rows = dy.shape()[0], columns = dy.shape()[1];
  Tensor dz = dy;
  if (act != Activation::none) dz = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
  if (act == Activation::relu) {
    const float *y = kept.data<float>(), *d = dy.data<float>();
    float* out = dz.mutable_data<float>();
    store(dbias, column_sums<1>(rows, columns, [&](int64_t begin, int64_t end, float* sum) {
            const int64_t at = begin * columns;
            relu_backward_rows(y + at, d + at, end - begin, columns, out + at, sum);
          }));
  } else {
    if (act != Activation::none) activation_backward(kept, dy, act, dz);
    store_column_sums(dbias, dz.data<float>(), rows, columns);
  }
  if (dx) matmul(dz, false, w, false, false, dx);
  if (dw.value) matmul(dz, true, x, false, dw.accumulate, dw.value);
}

}  // namespace howmany::onednn
