#include "core/backends/cuda/cuda.h"
#include "core/backends/cuda/launch.cuh"

// Losses. A loss is summed in a fixed order, and the host waits for it.
namespace howmany::backends {
namespace {

using cuda::block_max;
using cuda::block_sum;
using cuda::each;
using cuda::each_row;
using cuda::OnDevice;
using cuda::Pair;

constexpr int64_t kStretch = 4096;  // elements that a block sums

double total(const Tensor& parts, const OnDevice& on) {
  Tensor sum = Tensor::zeros({1}, Dtype::f64, parts.device());
  const int64_t n = parts.numel();
  const double* const in = parts.data<double>();
  double* const out = sum.mutable_data<double>();
  each_row(1, n, on, [=] __device__(int64_t) {
    Pair mine{0, 0};
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) mine.a += in[i];
    const double all = block_sum(mine).a;
    if (threadIdx.x == 0) *out = all;
  });
  return sum.item();
}

}  // namespace

double Cuda::softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double denominator,
                                   Tensor& dlogits) const {
  const OnDevice on(logits);
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  Tensor losses = Tensor::empty({rows}, Dtype::f64, logits.device());
  const float* const in = logits.data<float>();
  const int64_t* const label = labels.data<int64_t>();
  double* const loss = losses.mutable_data<double>();
  float* const out = dlogits.mutable_data<float>();
  each_row(rows, classes, on, [=] __device__(int64_t n) {
    const float* const row = in + n * classes;
    float most = -INFINITY;
    for (int64_t k = threadIdx.x; k < classes; k += blockDim.x) most = fmaxf(most, row[k]);
    const float top = block_max(most);
    Pair mine{0, 0};
    for (int64_t k = threadIdx.x; k < classes; k += blockDim.x) mine.a += expf(row[k] - top);
    const double sum = block_sum(mine).a;
    if (threadIdx.x == 0) loss[n] = (log(sum) - (row[label[n]] - top)) / denominator;
    for (int64_t k = threadIdx.x; k < classes; k += blockDim.x)
      out[n * classes + k] =
          static_cast<float>((expf(row[k] - top) / sum - (k == label[n] ? 1 : 0)) / denominator);
  });
  return total(losses, on);
}

double Cuda::mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const {
  const OnDevice on(y);
  const int64_t n = y.numel(), stretches = (n + kStretch - 1) / kStretch;
  Tensor losses = Tensor::empty({stretches}, Dtype::f64, y.device());
  const float *const ys = y.data<float>(), *const targets = target.data<float>();
  double* const loss = losses.mutable_data<double>();
  float* const out = dy.mutable_data<float>();
  each_row(stretches, kStretch, on, [=] __device__(int64_t s) {
    const int64_t end = (s + 1) * kStretch < n ? (s + 1) * kStretch : n;
    Pair mine{0, 0};
    for (int64_t i = s * kStretch + threadIdx.x; i < end; i += blockDim.x) {
      const double off = double{ys[i]} - double{targets[i]};
      mine.a += off * off / denominator;
      out[i] = static_cast<float>(2 * off / denominator);
    }
    const double sum = block_sum(mine).a;
    if (threadIdx.x == 0) loss[s] = sum;
  });
  return total(losses, on);
}

}  // namespace howmany::backends
