#include <algorithm>
#include <cmath>

#include "core/backends/cuda/blas.h"
#include "core/backends/cuda/cuda.h"
#include "core/backends/cuda/launch.cuh"

// By blocks of query rows of all heads of a sample: their scores are one batch of products, become
// probabilities in place and are multiplied again. Backward makes them once more.
namespace howmany::backends {
namespace {

using cuda::block_max;
using cuda::block_sum;
using cuda::OnDevice;
using cuda::Pair;

// Rows: the scores of 16 heads against 1024 keys stay in the L2 cache of a Hopper.
constexpr int64_t kBlock = 256;

// One matrix for each head: rows `stride` apart, heads `apart`.
struct Matrices {
  float* data;
  int64_t rows, columns, stride, apart;
  Matrices part(int64_t begin, int64_t end) const {
    return {data + begin * stride, end - begin, columns, stride, apart};
  }
};

// One sample.
struct Sample {
  Sample(const Tensor& qkv, Heads h, int64_t index)
      : times(qkv.shape()[1]),
        width(qkv.shape()[2] / 3),
        size(width / h.count),
        heads(h.count),
        n(index),
        causal(h.causal),
        scale(1 / std::sqrt(static_cast<float>(size))),
        device(qkv.device().index) {}

  Matrices part(const float* qkv, int64_t which) const {
    return {const_cast<float*>(qkv) + (n * times * 3 + which) * width, times, size, 3 * width,
            size};
  }
  Matrices of_y(const float* y) const {
    return {const_cast<float*>(y) + n * times * width, times, size, width, size};
  }
  int64_t keys(int64_t end) const { return causal ? end : times; }
  Matrices scores(Tensor& scratch, int64_t begin, int64_t end) const {
    const int64_t rows = end - begin;
    return {scratch.mutable_data<float>(), rows, keys(end), keys(end), rows * keys(end)};
  }
  Tensor scratch(Device where) const {
    return Tensor::empty({heads, kBlock < times ? kBlock : times, times}, Dtype::f32, where);
  }

  void multiply(float factor, const Matrices& a, bool transpose_a, const Matrices& b,
                bool transpose_b, bool accumulate, const Matrices& y) const {
    cuda::multiply({.a = a.data,
                    .b = b.data,
                    .y = y.data,
                    .m = y.rows,
                    .n = y.columns,
                    .k = transpose_a ? a.rows : a.columns,
                    .transpose_a = transpose_a,
                    .transpose_b = transpose_b,
                    .accumulate = accumulate,
                    .factor = factor,
                    .strides = {a.stride, b.stride, y.stride},
                    .batch = heads,
                    .apart = {a.apart, b.apart, y.apart}},
                   device);
  }

  int64_t times, width, size, heads, n;
  bool causal;
  float scale;
  int device;
};

// Scores of query rows from `begin` on become probabilities, zero where masked.
void softmax_rows(const Sample& s, const Matrices& p, int64_t begin, float* lse,
                  const OnDevice& on) {
  float *const scores = p.data, *const logs = lse + s.n * s.heads * s.times;
  const int64_t rows = p.rows, keys = p.columns, times = s.times;
  const bool causal = s.causal;
  cuda::each_row(s.heads * rows, keys, on, [=] __device__(int64_t r) {
    const int64_t t = begin + r % rows, seen = causal ? t + 1 : keys;
    float* const row = scores + r * keys;
    float most = -INFINITY;
    for (int64_t j = threadIdx.x; j < seen; j += blockDim.x) most = fmaxf(most, row[j]);
    const float top = block_max(most);
    Pair mine{0, 0};
    for (int64_t j = threadIdx.x; j < seen; j += blockDim.x) mine.a += expf(row[j] - top);
    const double sum = block_sum(mine).a;
    for (int64_t j = threadIdx.x; j < keys; j += blockDim.x)
      row[j] = j < seen ? static_cast<float>(expf(row[j] - top) / sum) : 0;
    if (threadIdx.x == 0) logs[r / rows * times + t] = static_cast<float>(top + log(sum));
  });
}

struct Backward {
  const float *qkv, *y, *lse, *dy;
  float* dqkv;
};

// Scores become probabilities again, and the gradients dp of these those of the scores.
void backward_rows(const Sample& s, const Matrices& p, const Matrices& dp, int64_t begin,
                   const Backward& in, const OnDevice& on) {
  float *const scores = p.data, *const gradients = dp.data;
  const float* const logs = in.lse + s.n * s.heads * s.times;
  const Matrices y = s.of_y(in.y), dy = s.of_y(in.dy);
  const float *const ys = y.data, *const dys = dy.data;
  const int64_t rows = p.rows, keys = p.columns, times = s.times, size = s.size, width = s.width;
  const bool causal = s.causal;
  cuda::each_row(s.heads * rows, keys, on, [=] __device__(int64_t r) {
    const int64_t head = r / rows, t = begin + r % rows, seen = causal ? t + 1 : keys;
    const int64_t at = t * width + head * size;
    Pair mine{0, 0};
    for (int64_t c = threadIdx.x; c < size; c += blockDim.x)
      mine.a += double{ys[at + c]} * dys[at + c];
    const auto carried = static_cast<float>(block_sum(mine).a);
    const float log_sum = logs[head * times + t];
    float *const row = scores + r * keys, *const d = gradients + r * keys;
    for (int64_t j = threadIdx.x; j < keys; j += blockDim.x) {
      row[j] = j < seen ? expf(row[j] - log_sum) : 0;
      d[j] = j < seen ? row[j] * (d[j] - carried) : 0;
    }
  });
}

void forward(const Sample& s, const float* qkv, Tensor& scratch, float* lse, float* y,
             const OnDevice& on) {
  const Matrices q = s.part(qkv, 0), k = s.part(qkv, 1), v = s.part(qkv, 2);
  for (int64_t begin = 0; begin < s.times; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, s.times);
    const Matrices p = s.scores(scratch, begin, end);
    s.multiply(s.scale, q.part(begin, end), false, k.part(0, p.columns), true, false, p);
    softmax_rows(s, p, begin, lse, on);
    s.multiply(1, p, false, v.part(0, p.columns), false, false, s.of_y(y).part(begin, end));
  }
}

// From the last block, which looks at every key, so that dk and dv are written before they are
// added to.
void backward(const Sample& s, const Backward& in, Tensor& scratch, Tensor& dscratch,
              const OnDevice& on) {
  const Matrices q = s.part(in.qkv, 0), k = s.part(in.qkv, 1), v = s.part(in.qkv, 2);
  const Matrices dq = s.part(in.dqkv, 0), dk = s.part(in.dqkv, 1), dv = s.part(in.dqkv, 2);
  for (int64_t end = s.times; end > 0; end = (end - 1) / kBlock * kBlock) {
    const int64_t begin = (end - 1) / kBlock * kBlock;
    const bool add = end < s.times;
    const Matrices p = s.scores(scratch, begin, end), ds = s.scores(dscratch, begin, end);
    const Matrices rows = q.part(begin, end), keys = k.part(0, p.columns);
    const Matrices d = s.of_y(in.dy).part(begin, end);
    s.multiply(s.scale, rows, false, keys, true, false, p);
    s.multiply(1, d, false, v.part(0, p.columns), true, false, ds);
    backward_rows(s, p, ds, begin, in, on);
    s.multiply(1, p, true, d, false, add, dv.part(0, p.columns));
    s.multiply(s.scale, ds, true, rows, false, add, dk.part(0, p.columns));
    s.multiply(s.scale, ds, false, keys, false, false, dq.part(begin, end));
  }
}

}  // namespace

void Cuda::attention(const Tensor& qkv, Heads heads, Tensor& lse, Tensor& y) const {
  if (qkv.numel() == 0) return;
  const OnDevice on(qkv);
  Tensor scratch = Sample(qkv, heads, 0).scratch(qkv.device());
  for (int64_t n = 0; n < qkv.shape()[0]; ++n)
    forward(Sample(qkv, heads, n), qkv.data<float>(), scratch, lse.mutable_data<float>(),
            y.mutable_data<float>(), on);
}

void Cuda::attention_backward(const Tensor& qkv, const Tensor& y, const Tensor& lse,
                              const Tensor& dy, Heads heads, Tensor& dqkv) const {
  if (qkv.numel() == 0) return;
  const OnDevice on(qkv);
  const Backward all{qkv.data<float>(), y.data<float>(), lse.data<float>(), dy.data<float>(),
                     dqkv.mutable_data<float>()};
  const Sample any(qkv, heads, 0);
  Tensor scratch = any.scratch(qkv.device()), dscratch = any.scratch(qkv.device());
  for (int64_t n = 0; n < qkv.shape()[0]; ++n)
    backward(Sample(qkv, heads, n), all, scratch, dscratch, on);
}

}  // namespace howmany::backends
