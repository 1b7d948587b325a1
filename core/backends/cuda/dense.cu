#include "core/backends/cuda/blas.h"
#include "core/backends/cuda/columns.cuh"
#include "core/backends/cuda/cuda.h"

namespace howmany::backends {

using cuda::each;
using cuda::OnDevice;
using cuda::Pair;

void Cuda::matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b,
                  bool accumulate, Tensor& y) const {
  cuda::multiply({.a = a,
                  .b = b,
                  .y = y.mutable_data<float>(),
                  .m = y.shape()[0],
                  .n = y.shape()[1],
                  .k = a.shape()[transpose_a ? 0 : 1],
                  .transpose_a = transpose_a,
                  .transpose_b = transpose_b,
                  .accumulate = accumulate},
                 a.device().index);
}

// Relu fuses. cuBLASLt's gelu is the tanh form, not ours; tanh it has none.
void Cuda::linear(const Tensor& x, const Tensor& w, const Tensor& bias, Activation act,
                  Tensor& y) const {
  cuda::multiply({.a = x,
                  .b = w,
                  .y = y.mutable_data<float>(),
                  .m = x.shape()[0],
                  .n = w.shape()[0],
                  .k = w.shape()[1],
                  .transpose_b = true,
                  .bias = bias ? bias.data<float>() : nullptr,
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
  if (!dbias.value) return;
  const OnDevice on(dy);
  const int64_t rows = dy.shape()[0], out = dy.shape()[1];
  const float* const d = dz.data<float>();
  const cuda::Slot slot = cuda::slot_of(dbias);
  cuda::reduce_columns(
      rows, out, dy.device(), on,
      [=] __device__(int64_t n, int64_t o) {
        return Pair{d[n * out + o], 0};
      },
      [=] __device__(int64_t o, cuda::Sums sum) { slot.put(o, sum.a); });
}

void Cuda::embedding(const Tensor& ids, const Tensor& table, Tensor& y) const {
  const OnDevice on(table);
  const cuda::Divisor by_width(table.shape()[1]);
  const int64_t width = table.shape()[1];
  const int64_t* const id = ids.data<int64_t>();
  const float* const rows = table.data<float>();
  float* const out = y.mutable_data<float>();
  each(y.numel(), on,
       [=] __device__(int64_t i) { out[i] = rows[id[by_width(i)] * width + by_width.rest(i)]; });
}

// Repeated ids meet in atomic additions, whose order differs from run to run.
void Cuda::embedding_backward(const Tensor& ids, const Tensor& dy, GradOut& dtable) const {
  if (!dtable.accumulate) dtable.value.zero();
  const OnDevice on(dy);
  const cuda::Divisor by_width(dtable.value.shape()[1]);
  const int64_t width = dtable.value.shape()[1];
  const int64_t* const id = ids.data<int64_t>();
  const float* const d = dy.data<float>();
  float* const sums = dtable.value.mutable_data<float>();
  each(dy.numel(), on, [=] __device__(int64_t i) {
    atomicAdd(&sums[id[by_width(i)] * width + by_width.rest(i)], d[i]);
  });
}

}  // namespace howmany::backends
