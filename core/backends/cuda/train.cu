#include "core/backends/cuda/columns.cuh"
#include "core/backends/cuda/cuda.h"

// Losses. A loss is summed in a fixed order, the sums of blocks in double.
namespace howmany::backends {
namespace {

using cuda::block_max;
using cuda::block_sum;
using cuda::each_row;
using cuda::OnDevice;
using cuda::Pair;

constexpr int64_t kStretch = 4096;  // elements that a block sums

Tensor total(const Tensor& parts, double denominator, const OnDevice& on) {
  Tensor sum = Tensor::empty({1}, Dtype::f64, parts.device());
  const float* const in = parts.data<float>();
  double* const out = sum.mutable_data<double>();
  cuda::reduce_columns(
      parts.numel(), 1, parts.device(), on,
      [=] __device__(int64_t i, int64_t) {
        return Pair{in[i], 0};
      },
      [=] __device__(int64_t, cuda::Sums all) { *out = all.a / denominator; });
  return sum;
}

}  // namespace

Tensor Cuda::softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double denominator,
                                   Tensor& dlogits) const {
  const OnDevice on(logits);
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  Tensor losses = Tensor::empty({rows}, Dtype::f32, logits.device());
  const float* const in = logits.data<float>();
  const int64_t* const label = labels.data<int64_t>();
  float *const loss = losses.mutable_data<float>(), *const out = dlogits.mutable_data<float>();
  const auto by = static_cast<float>(1 / denominator);
  each_row(rows, classes, on, [=] __device__(int64_t n) {
    const float* const row = in + n * classes;
    float most = -INFINITY;
    for (int64_t k = threadIdx.x; k < classes; k += blockDim.x) most = fmaxf(most, row[k]);
    const float top = block_max(most);
    Pair mine{0, 0};
    for (int64_t k = threadIdx.x; k < classes; k += blockDim.x) mine.a += expf(row[k] - top);
    const float sum = block_sum(mine).a, share = 1 / sum;
    if (threadIdx.x == 0) loss[n] = logf(sum) - (row[label[n]] - top);
    for (int64_t k = threadIdx.x; k < classes; k += blockDim.x)
      out[n * classes + k] = (expf(row[k] - top) * share - (k == label[n] ? 1 : 0)) * by;
  });
  return total(losses, denominator, on);
}

Tensor Cuda::mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const {
  const OnDevice on(y);
  const int64_t n = y.numel(), stretches = (n + kStretch - 1) / kStretch;
  Tensor losses = Tensor::empty({stretches}, Dtype::f32, y.device());
  const float *const ys = y.data<float>(), *const targets = target.data<float>();
  float *const loss = losses.mutable_data<float>(), *const out = dy.mutable_data<float>();
  const auto by = static_cast<float>(2 / denominator);
  each_row(stretches, kStretch, on, [=] __device__(int64_t s) {
    const int64_t end = (s + 1) * kStretch < n ? (s + 1) * kStretch : n;
    Pair mine{0, 0};
    for (int64_t i = s * kStretch + threadIdx.x; i < end; i += blockDim.x) {
      const float off = ys[i] - targets[i];
      mine.a += off * off;
      out[i] = off * by;
    }
    const float sum = block_sum(mine).a;
    if (threadIdx.x == 0) loss[s] = sum;
  });
  return total(losses, denominator, on);
}

}  // namespace howmany::backends
