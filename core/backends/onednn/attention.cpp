// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"
#include "core/base/error.h"

// Works on blocks of query rows. The scores of a block against all visible keys are one product.
// They stay in the cache and become probabilities in place. Threads divide the heads of all
// samples.
namespace howmany::onednn {
namespace {

constexpr int64_t kBlockRows = 64;  // more rows: more masked scores; fewer rows: slow products

// An f32 matrix whose rows start `stride` elements apart.
struct Matrix {
  float* data;
  int64_t rows, columns, stride;
  Matrix part(int64_t begin, int64_t end) const {
    return {data + begin * stride, end - begin, columns, stride};
  }
};

// y = factor op(a) op(b), or adds it to y. Within a parallel region it uses only the calling
// thread.
void product(float factor, const Matrix& a, bool transpose_a, const Matrix& b, bool transpose_b,
             bool accumulate, const Matrix& y) {
  const int64_t k = transpose_a ? a.rows : a.columns;
  const dnnl_status_t status =
      dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', y.rows, y.columns, k, factor,
                 a.data, a.stride, b.data, b.stride, accumulate ? 1.0F : 0.0F, y.data, y.stride);
  HM_ENSURE(status == dnnl_success, "[attention] oneDNN sgemm failed with status {}",
            static_cast<int>(status));
}

// Converts a row of scores to probabilities; sets those from `seen` on to 0. Returns the row's
// log-sum-exp.
HM_SIMD float softmax_row(float* __restrict row, int64_t seen, int64_t keys) {
  float top = row[0];
#pragma omp simd reduction(max : top)
  for (int64_t j = 0; j < seen; ++j) top = std::max(top, row[j]);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < seen; ++j) {
    row[j] = exp_of(row[j] - top);
    sum += row[j];
  }
  const float inverse = 1 / sum;
  for (int64_t j = 0; j < seen; ++j) row[j] *= inverse;
  for (int64_t j = seen; j < keys; ++j) row[j] = 0;
  return top + std::log(sum);
}

// Recomputes probabilities from scores, and converts their gradients dp to those of the scores.
HM_SIMD void backward_row(float* __restrict row, float* __restrict dp, float log_sum,
                          const float* __restrict y, const float* __restrict dy, int64_t size,
                          int64_t seen, int64_t keys) {
  float carried = 0;
#pragma omp simd reduction(+ : carried)
  for (int64_t c = 0; c < size; ++c) carried += y[c] * dy[c];
#pragma omp simd
  for (int64_t j = 0; j < seen; ++j) {
    row[j] = exp_of(row[j] - log_sum);
    dp[j] = row[j] * (dp[j] - carried);
  }
  for (int64_t j = seen; j < keys; ++j) row[j] = dp[j] = 0;
}

// One head of one sample.
struct Head {
  Head(const Tensor& qkv, Heads h, int64_t index)
      : times(qkv.shape()[1]),
        width(qkv.shape()[2] / 3),
        size(width / h.count),
        sample(index / h.count),
        head(index % h.count),
        causal(h.causal),
        scale(1 / std::sqrt(static_cast<float>(size))) {}

  Matrix part(const float* qkv, int64_t which) const {
    return {const_cast<float*>(qkv) + (sample * times * 3 + which) * width + head * size, times,
            size, 3 * width};
  }
  Matrix of_y(const float* y) const {
    return {const_cast<float*>(y) + sample * times * width + head * size, times, size, width};
  }
  int64_t seen(int64_t t) const { return causal ? t + 1 : times; }
  Matrix scores(Tensor& scratch, int64_t begin, int64_t end) const {
    return {scratch.mutable_data<float>(), end - begin, seen(end - 1), seen(end - 1)};
  }

  int64_t times, width, size, sample, head;
  bool causal;
  float scale;
};

Tensor scratch_for(const Tensor& qkv) {
  const int64_t times = qkv.shape()[1];
  return Tensor::empty({std::min(kBlockRows, times), times});
}

void forward_head(const Head& h, const float* qkv, Tensor& scratch, float* lse, float* y) {
  const Matrix q = h.part(qkv, 0), k = h.part(qkv, 1), v = h.part(qkv, 2);
  for (int64_t begin = 0; begin < h.times; begin += kBlockRows) {
    const int64_t end = std::min(begin + kBlockRows, h.times);
    const Matrix p = h.scores(scratch, begin, end);
    product(h.scale, q.part(begin, end), false, k.part(0, p.columns), true, false, p);
    for (int64_t t = begin; t < end; ++t)
      lse[t] = softmax_row(p.part(t - begin, t - begin + 1).data, h.seen(t), p.columns);
    product(1, p, false, v.part(0, p.columns), false, false, h.of_y(y).part(begin, end));
  }
}

struct Backward {
  const float *qkv, *y, *lse, *dy;
  float* dqkv;
};

// Starts with the last block, which uses every key. So dk and dv are written once before other
// blocks add to them.
void backward_head(const Head& h, const Backward& in, Tensor& scratch, Tensor& dscratch) {
  const Matrix q = h.part(in.qkv, 0), k = h.part(in.qkv, 1), v = h.part(in.qkv, 2);
  const Matrix dq = h.part(in.dqkv, 0), dk = h.part(in.dqkv, 1), dv = h.part(in.dqkv, 2);
  const Matrix y = h.of_y(in.y), dy = h.of_y(in.dy);
  for (int64_t end = h.times; end > 0; end = (end - 1) / kBlockRows * kBlockRows) {
    const int64_t begin = (end - 1) / kBlockRows * kBlockRows;
    const bool add = end < h.times;
    const Matrix p = h.scores(scratch, begin, end), ds = h.scores(dscratch, begin, end);
    const Matrix d = dy.part(begin, end);
    product(h.scale, q.part(begin, end), false, k.part(0, p.columns), true, false, p);
    product(1, d, false, v.part(0, p.columns), true, false, ds);
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = (t - begin) * p.columns;
      backward_row(p.data + at, ds.data + at, in.lse[t], y.part(t, t + 1).data,
                   dy.part(t, t + 1).data, h.size, h.seen(t), p.columns);
    }
    product(1, p, true, d, false, add, dv.part(0, p.columns));
    product(h.scale, ds, true, q.part(begin, end), false, add, dk.part(0, p.columns));
    product(h.scale, ds, false, k.part(0, p.columns), false, false, dq.part(begin, end));
  }
}

// Returns the elements of one head, for parallel_for().
int64_t cost_of(const Tensor& qkv) { return qkv.shape()[1] * qkv.shape()[1]; }

}  // namespace

void OneDnn::attention(const Tensor& qkv, Heads heads, Tensor& lse, Tensor& y) const {
  if (qkv.numel() == 0) return;
  const float* const in = qkv.data<float>();
  float *const logs = lse.mutable_data<float>(), *const out = y.mutable_data<float>();
  const int64_t times = qkv.shape()[1];
  parallel_for(qkv.shape()[0] * heads.count, cost_of(qkv), [&](int64_t begin, int64_t end) {
    Tensor scratch = scratch_for(qkv);
    for (int64_t i = begin; i < end; ++i)
      forward_head(Head(qkv, heads, i), in, scratch, logs + i * times, out);
  });
}

void OneDnn::attention_backward(const Tensor& qkv, const Tensor& y, const Tensor& lse,
                                const Tensor& dy, Heads heads, Tensor& dqkv) const {
  if (qkv.numel() == 0) return;
  const Backward all{qkv.data<float>(), y.data<float>(), lse.data<float>(), dy.data<float>(),
                     dqkv.mutable_data<float>()};
  const int64_t times = qkv.shape()[1];
  parallel_for(qkv.shape()[0] * heads.count, cost_of(qkv), [&](int64_t begin, int64_t end) {
    Tensor scratch = scratch_for(qkv), dscratch = scratch_for(qkv);
    for (int64_t i = begin; i < end; ++i) {
      Backward one = all;
      one.lse += i * times;
      backward_head(Head(qkv, heads, i), one, scratch, dscratch);
    }
  });
}

}  // namespace howmany::onednn
