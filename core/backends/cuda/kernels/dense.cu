// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/blas/blas.h"
#include "core/backends/cuda/kernels/bias.h"
#include "core/backends/cuda/kernels/pack.cuh"
#include "core/backends/cuda/runtime/cuda.h"

namespace howmany::backends {

namespace {

using cuda::by_16;
using cuda::each_pack;
using cuda::kLanes;
using cuda::load;
using cuda::OnDevice;

// The table may be f32 parameters with y in bf16, or both may be activations.
template <typename Row, typename T>
void take_rows(const Tensor& ids, const Tensor& table, int64_t first, Tensor& y) {
  const OnDevice on(table);
  const int64_t here = table.shape()[0], width = table.shape()[1];
  const cuda::Divisor by_width(width);
  const int64_t* const id = ids.data<int64_t>();
  const Row* const rows = table.data<Row>();
  T* const out = y.mutable_data<T>();
  const bool together = width % kLanes<T> == 0 && by_16(rows, out);
  each_pack<kLanes<T>>(y.numel(), together, on, [=] __device__(int64_t i, auto lanes) {
    const int64_t row = id[by_width(i)] - first;
    if (row >= 0 && row < here)
      cuda::store(out + i, load(rows + row * width + by_width.rest(i), lanes));
    else
      cuda::store(out + i, cuda::each_lane(lanes, [](int) { return 0.0f; }));
  });
}

// Repeated ids are summed by atomic additions, whose order is not deterministic.
template <typename T>
void add_rows(const Tensor& ids, const Tensor& dy, int64_t first, Tensor& dtable) {
  const OnDevice on(dy);
  const int64_t here = dtable.shape()[0], width = dtable.shape()[1];
  const cuda::Divisor by_width(width);
  const int64_t* const id = ids.data<int64_t>();
  const T* const d = dy.data<T>();
  float* const sums = dtable.mutable_data<float>();
  const bool together = width % kLanes<T> == 0 && by_16(d);
  each_pack<kLanes<T>>(dy.numel(), together, on, [=] __device__(int64_t i, auto lanes) {
    const int64_t row = id[by_width(i)] - first;
    if (row < 0 || row >= here) return;
    const auto v = load(d + i, lanes);
    float* const sum = sums + row * width + by_width.rest(i);
    HM_UNROLL
    for (int l = 0; l < lanes.count; ++l) atomicAdd(sum + l, v.at[l]);
  });
}

}  // namespace

void Cuda::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                  bool accumulate, Tensor& y) const {
  cuda::multiply({.a = a,
                  .b = b,
                  .y = y,
                  .m = y.shape()[0],
                  .n = y.shape()[1],
                  .k = a.shape()[transpose_a ? 0 : 1],
                  .transpose_a = transpose_a,
                  .transpose_b = transpose_b,
                  .accumulate = accumulate},
                 a.device().index);
}

// Fuses relu. cuBLASLt's gelu is the tanh approximation, unlike ours, and it has no tanh.
void Cuda::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
                  Tensor& y) const {
  cuda::multiply({.a = x,
                  .b = w,
                  .y = y,
                  .m = x.shape()[0],
                  .n = w.shape()[0],
                  .k = w.shape()[1],
                  .transpose_b = true,
                  .bias = bias ? cuda::Operand(bias) : cuda::Operand(),
                  .relu = act == Activation::relu},
                 x.device().index);
  if (act == Activation::gelu || act == Activation::tanh) activation(y, act, y);
}

void Cuda::linear_backward(const Tensor& x, const Tensor& w, const Tensor& kept, const Tensor& dy,
                           Activation act, Tensor& dx, GradOut& dw, GradOut& dbias) const {
  Tensor dz = dy;
  if (act != Activation::none) {
    dz = Tensor::empty(dy.shape(), dy.dtype(), dy.device());
    activation_backward(kept, dy, act, dz);
  }
  if (dx) matmul(dz, false, w, false, false, dx);
  if (dw.value) matmul(dz, true, x, false, dw.accumulate, dw.value);
  cuda::bias_gradient(dz, dbias, OnDevice(dy));
}

void Cuda::embedding(const Tensor& ids, const Tensor& table, int64_t first, Tensor& y) const {
  if (table.dtype() == y.dtype())
    cuda::by_element(y.dtype(),
                     [&](auto e) { take_rows<decltype(e), decltype(e)>(ids, table, first, y); });
  else
    take_rows<float, Bf16>(ids, table, first, y);
}

void Cuda::embedding_backward(const Tensor& ids, const Tensor& dy, int64_t first,
                              GradOut& dtable) const {
  if (!dtable.accumulate) dtable.value.zero();
  cuda::by_element(dy.dtype(),
                   [&](auto e) { add_rows<decltype(e)>(ids, dy, first, dtable.value); });
}

}  // namespace howmany::backends
