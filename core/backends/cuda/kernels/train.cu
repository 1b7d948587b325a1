// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/kernels/columns.cuh"
#include "core/backends/cuda/runtime/cuda.h"

// Losses. They are summed in a fixed order; the sums of blocks are added in double.
namespace howmany::backends {
namespace {

using cuda::block_max;
using cuda::block_sum;
using cuda::by_16;
using cuda::by_element;
using cuda::each_column;
using cuda::each_lane;
using cuda::each_row;
using cuda::kLanes;
using cuda::load;
using cuda::OnDevice;
using cuda::Pair;
using cuda::store;

constexpr int64_t kStretch = 4096;  // elements per block

Tensor total(const Tensor& parts, double denominator, const OnDevice& on) {
  Tensor sum = Tensor::empty({1}, Dtype::f64, parts.device());
  const float* const in = parts.data<float>();
  double* const out = sum.mutable_data<double>();
  cuda::reduce_columns<1>(
      parts.numel(), 1, false, parts.device(), on,
      [=] __device__(int64_t i, int64_t, auto lanes) {
        return each_lane(lanes, [&](int l) { return Pair{in[i + l], 0}; });
      },
      [=] __device__(int64_t, cuda::Sums all) { *out = all.a / denominator; });
  return sum;
}

struct Exponentials {
  float top, sum;  // the largest logit, and the sum of exp(logit - top)
};

// Every thread of the block must call it.
template <typename T>
__device__ Exponentials sum_of_exponentials(const T* row, int64_t classes, bool together) {
  float most = -INFINITY;
  each_column<kLanes<T>>(classes, together, [&](int64_t k, auto lanes) {
    const auto v = load(row + k, lanes);
    HM_UNROLL
    for (int l = 0; l < lanes.count; ++l) most = fmaxf(most, v.at[l]);
  });
  const float top = block_max(most);
  Pair mine{0, 0};
  each_column<kLanes<T>>(classes, together, [&](int64_t k, auto lanes) {
    const auto v = load(row + k, lanes);
    HM_UNROLL
    for (int l = 0; l < lanes.count; ++l) mine.a += expf(v.at[l] - top);
  });
  return {top, block_sum(mine).a};
}

template <typename T>
struct CrossEntropy {
  const T* logits;
  const int64_t* labels;
  float* loss;
  T* out;
  int64_t classes;
  bool together;
  float by;

  __device__ void operator()(int64_t n) const {
    const T* const row = logits + n * classes;
    const int64_t label = labels[n];
    const auto [top, sum] = sum_of_exponentials(row, classes, together);
    const float share = 1 / sum;
    if (threadIdx.x == 0) loss[n] = logf(sum) - (static_cast<float>(row[label]) - top);
    each_column<kLanes<T>>(classes, together, [&](int64_t k, auto lanes) {
      const auto v = load(row + k, lanes);
      store(out + n * classes + k, each_lane(lanes, [&](int l) {
              return (expf(v.at[l] - top) * share - (k + l == label ? 1 : 0)) * by;
            }));
    });
  }
};

template <typename T>
void cross_entropy(const Tensor& logits, const Tensor& labels, double denominator, Tensor& losses,
                   Tensor& dlogits, const OnDevice& on) {
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  CrossEntropy<T> f{.logits = logits.data<T>(),
                    .labels = labels.data<int64_t>(),
                    .loss = losses.mutable_data<float>(),
                    .out = dlogits.mutable_data<T>(),
                    .classes = classes,
                    .together = false,
                    .by = static_cast<float>(1 / denominator)};
  f.together = classes % kLanes<T> == 0 && by_16(f.logits, f.out);
  each_row(rows, f.together ? classes / kLanes<T> : classes, on, f);
}

template <typename T>
struct EntropyPart {
  const T* logits;
  const int64_t* labels;
  float* part;
  int64_t classes, first;
  bool together;

  __device__ void operator()(int64_t n) const {
    const T* const row = logits + n * classes;
    const auto [top, sum] = sum_of_exponentials(row, classes, together);
    if (threadIdx.x != 0) return;
    const int64_t label = labels[n] - first;
    part[2 * n] = top + logf(sum);
    part[2 * n + 1] = label >= 0 && label < classes ? static_cast<float>(row[label]) : 0;
  }
};

template <typename T>
struct EntropyOfParts {
  const T* logits;
  const int64_t* labels;
  const float* all;
  float* loss;
  T* out;
  int64_t rows, classes, first, ranks;
  bool together;
  float by;

  __device__ void operator()(int64_t n) const {
    const float* const parts = all + 2 * n;
    float top = -INFINITY, sum = 0, of_label = 0;
    for (int64_t r = 0; r < ranks; ++r) top = fmaxf(top, parts[2 * r * rows]);
    for (int64_t r = 0; r < ranks; ++r) {
      sum += expf(parts[2 * r * rows] - top);
      of_label += parts[2 * r * rows + 1];
    }
    const float log_sum = top + logf(sum);
    const int64_t label = labels[n] - first;
    if (threadIdx.x == 0) loss[n] = log_sum - of_label;
    each_column<kLanes<T>>(classes, together, [&](int64_t k, auto lanes) {
      const auto v = load(logits + n * classes + k, lanes);
      store(out + n * classes + k, each_lane(lanes, [&](int l) {
              return (expf(v.at[l] - log_sum) - (k + l == label ? 1 : 0)) * by;
            }));
    });
  }
};

template <typename T>
void entropy_part(const Tensor& logits, const Tensor& labels, int64_t first, Tensor& part) {
  const OnDevice on(logits);
  EntropyPart<T> f{.logits = logits.data<T>(),
                   .labels = labels.data<int64_t>(),
                   .part = part.mutable_data<float>(),
                   .classes = logits.shape()[1],
                   .first = first,
                   .together = false};
  f.together = f.classes % kLanes<T> == 0 && by_16(f.logits);
  each_row(logits.shape()[0], f.together ? f.classes / kLanes<T> : f.classes, on, f);
}

template <typename T>
void entropy_of_parts(const Tensor& logits, const Tensor& labels, int64_t first, const Tensor& all,
                      double denominator, Tensor& losses, Tensor& dlogits, const OnDevice& on) {
  EntropyOfParts<T> f{.logits = logits.data<T>(),
                      .labels = labels.data<int64_t>(),
                      .all = all.data<float>(),
                      .loss = losses.mutable_data<float>(),
                      .out = dlogits.mutable_data<T>(),
                      .rows = logits.shape()[0],
                      .classes = logits.shape()[1],
                      .first = first,
                      .ranks = all.shape()[0],
                      .together = false,
                      .by = static_cast<float>(1 / denominator)};
  f.together = f.classes % kLanes<T> == 0 && by_16(f.logits, f.out);
  each_row(f.rows, f.together ? f.classes / kLanes<T> : f.classes, on, f);
}

// Computes one loss per kStretch elements. Targets are f32.
template <typename T>
void squared_error(const Tensor& y, const Tensor& target, double denominator, Tensor& losses,
                   Tensor& dy, const OnDevice& on) {
  const int64_t n = y.numel();
  const T* const ys = y.data<T>();
  const float* const targets = target.data<float>();
  float* const loss = losses.mutable_data<float>();
  T* const out = dy.mutable_data<T>();
  const auto by = static_cast<float>(2 / denominator);
  each_row(losses.numel(), kStretch, on, [=] __device__(int64_t s) {
    const int64_t end = (s + 1) * kStretch < n ? (s + 1) * kStretch : n;
    Pair mine{0, 0};
    for (int64_t i = s * kStretch + threadIdx.x; i < end; i += blockDim.x) {
      const float off = static_cast<float>(ys[i]) - targets[i];
      mine.a += off * off;
      out[i] = cuda::rounded<T>(off * by);
    }
    const float sum = block_sum(mine).a;
    if (threadIdx.x == 0) loss[s] = sum;
  });
}

}  // namespace

Tensor Cuda::softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double denominator,
                                   Tensor& dlogits) const {
  const OnDevice on(logits);
  Tensor losses = Tensor::empty({logits.shape()[0]}, Dtype::f32, logits.device());
  by_element(logits.dtype(), [&](auto e) {
    cross_entropy<decltype(e)>(logits, labels, denominator, losses, dlogits, on);
  });
  return total(losses, denominator, on);
}

void Cuda::cross_entropy_part(const Tensor& logits, const Tensor& labels, int64_t first,
                              Tensor& part) const {
  by_element(logits.dtype(),
             [&](auto e) { entropy_part<decltype(e)>(logits, labels, first, part); });
}

Tensor Cuda::cross_entropy_of_parts(const Tensor& logits, const Tensor& labels, int64_t first,
                                    const Tensor& all, double denominator, Tensor& dlogits) const {
  const OnDevice on(logits);
  Tensor losses = Tensor::empty({logits.shape()[0]}, Dtype::f32, logits.device());
  by_element(logits.dtype(), [&](auto e) {
    entropy_of_parts<decltype(e)>(logits, labels, first, all, denominator, losses, dlogits, on);
  });
  return total(losses, denominator, on);
}

Tensor Cuda::mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const {
  const OnDevice on(y);
  const int64_t stretches = (y.numel() + kStretch - 1) / kStretch;
  Tensor losses = Tensor::empty({stretches}, Dtype::f32, y.device());
  by_element(y.dtype(),
             [&](auto e) { squared_error<decltype(e)>(y, target, denominator, losses, dy, on); });
  return total(losses, denominator, on);
}

}  // namespace howmany::backends
