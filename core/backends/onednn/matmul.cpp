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
  bool transpose_a, transpose_b, bias, accumulate;
  DataType inputs;
  int threads;
  auto operator<=>(const MatmulKey&) const = default;
};

FormatTag tag_of(bool transpose) { return transpose ? FormatTag::ba : FormatTag::ab; }

Kernel make_matmul(const MatmulKey& key) {
  const Desc a({key.m, key.k}, key.inputs, tag_of(key.transpose_a));
  const Desc b({key.k, key.n}, key.inputs, tag_of(key.transpose_b));
  const Desc y = f32_desc({key.m, key.n}, FormatTag::ab);
  const Desc bias = key.bias ? f32_desc({1, key.n}, FormatTag::ab) : Desc();
  return Kernel(describe_with<dnnl::matmul>(attributes(key.accumulate), a, b, bias, y));
}

struct Matmul {
  explicit Matmul(const MatmulKey& key) : kernel(make_matmul(key)) {}
  Kernel kernel;
};

struct RoundKey {
  int64_t rows, columns;
  int threads;
  auto operator<=>(const RoundKey&) const = default;
};

struct Round {
  explicit Round(const RoundKey& key)
      : to_bf16(f32_desc({key.rows, key.columns}, FormatTag::ab),
                {{key.rows, key.columns}, DataType::bf16, FormatTag::ab}) {}
  Reorder to_bf16;
};

// f32, with any transposition and accumulation. The matmul primitive is no faster here, and sgemm
// needs no primitive per shape.
void general_product(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                     bool accumulate, Tensor& y) {
  if (y.device().type == DeviceType::meta) return;
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

Tensor rounded(const Tensor& t, bool is_weight) {
  if (product_type() == DataType::f32 || t.dtype() != Dtype::f32 || t.numel() == 0) return t;
  const RoundKey key{t.shape()[0], t.shape()[1], omp_get_max_threads()};
  const Reorder& to_bf16 = cached<Round>(key).to_bf16;
  return (is_weight ? packed(t, to_bf16) : to_bf16.run(t)).view(t.shape());
}

void product(const Operand& a, const Operand& b, const Tensor& bias, bool accumulate, Tensor& y) {
  if (y.numel() == 0) return;
  if (a.t.numel() == 0 && !bias) {  // an empty sum
    if (!accumulate) y.zero();
    return;
  }
  const DataType inputs = product_type();
  if (inputs == DataType::f32 && (a.transpose || accumulate))
    return general_product(a.t, a.transpose, b.t, b.transpose, accumulate, y);
  const MatmulKey key{.m = y.shape()[0],
                      .n = y.shape()[1],
                      .k = a.t.shape()[a.transpose ? 0 : 1],
                      .transpose_a = a.transpose,
                      .transpose_b = b.transpose,
                      .bias = bool(bias),
                      .accumulate = accumulate,
                      .inputs = inputs,
                      .threads = omp_get_max_threads()};
  const Tensor left = rounded(a.t, a.is_weight), right = rounded(b.t, b.is_weight);
  cached<Matmul>(key).kernel.run({{DNNL_ARG_SRC, left.raw()},
                                  {DNNL_ARG_WEIGHTS, right.raw()},
                                  {DNNL_ARG_BIAS, bias ? bias.raw() : nullptr},
                                  {DNNL_ARG_DST, y.mutable_raw()}},
                                 y.device());
}

void linear_gradients(const Tensor& x, const Tensor& w, const Tensor& dz, Tensor& dx, GradOut& dw) {
  const Tensor d = rounded(dz);  // once for both
  if (dx) product({d}, {.t = w, .is_weight = true}, {}, false, dx);
  if (dw.value) product({.t = d, .transpose = true}, {x}, {}, dw.accumulate, dw.value);
}

void OneDnn::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                    bool accumulate, Tensor& y) const {
  product({a, transpose_a}, {b, transpose_b}, {}, accumulate, y);
}

void OneDnn::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
                    Tensor& y) const {
  product({x}, {.t = w, .transpose = true, .is_weight = true}, bias, false, y);
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
  linear_gradients(x, w, dz, dx, dw);
}

}  // namespace howmany::onednn
