// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/backends/reference/reference.h"

namespace howmany::backends {
namespace {

// One head of one sample in a [N,T,parts D] tensor: rows of `size` values.
template <typename T>
struct Rows {
  T* first;
  int64_t stride;
  T* operator[](int64_t t) const { return first + t * stride; }
};

// Sizes of the tensors and offsets of each head.
struct Geometry {
  Geometry(const Tensor& qkv, Heads h)
      : samples(qkv.shape()[0]),
        times(qkv.shape()[1]),
        width(qkv.shape()[2] / 3),
        size(width / h.count),
        heads(h),
        scale(1 / std::sqrt(static_cast<double>(size))) {}

  int64_t keys(int64_t t) const { return heads.causal ? t + 1 : times; }
  // part: 0 q, 1 k, 2 v
  template <typename T>
  Rows<T> of_qkv(T* qkv, int64_t n, int64_t head, int64_t part) const {
    return {qkv + n * times * 3 * width + part * width + head * size, 3 * width};
  }
  template <typename T>
  Rows<T> of_y(T* y, int64_t n, int64_t head) const {
    return {y + n * times * width + head * size, width};
  }
  template <typename F>
  void each_head(F&& f) const {
    for (int64_t n = 0; n < samples; ++n)
      for (int64_t head = 0; head < heads.count; ++head) f(n, head);
  }

  int64_t samples, times, width, size;
  Heads heads;
  double scale;
};

template <typename T>
double dot(const T* a, const T* b, int64_t n) {
  double sum = 0;
  for (int64_t c = 0; c < n; ++c) sum += double{a[c]} * double{b[c]};
  return sum;
}

// Subtracts the largest score first, so that no exponential overflows.
double log_sum_exp(const Doubles& scores) {
  const double top = *std::ranges::max_element(scores);
  double sum = 0;
  for (double s : scores) sum += std::exp(s - top);
  return top + std::log(sum);
}

template <typename T>
Doubles scores_of(const Geometry& g, const T* q, Rows<const T> k, int64_t t) {
  Doubles scores = zeros(g.keys(t));
  for (int64_t j = 0; j < g.keys(t); ++j) scores[j] = g.scale * dot(q, k[j], g.size);
  return scores;
}

}  // namespace

void Reference::attention(const Tensor& qkv, Heads heads, Tensor& lse, Tensor& y) const {
  const Geometry g(qkv, heads);
  by_type(qkv, [&]<typename T>(T) {
    g.each_head([&](int64_t n, int64_t head) {
      const T* const in = qkv.data<T>();
      const auto q = g.of_qkv(in, n, head, 0), k = g.of_qkv(in, n, head, 1),
                 v = g.of_qkv(in, n, head, 2);
      const auto out = g.of_y(y.mutable_data<T>(), n, head);
      T* const logs = lse.mutable_data<T>() + (n * heads.count + head) * g.times;
      for (int64_t t = 0; t < g.times; ++t) {
        const Doubles scores = scores_of(g, q[t], k, t);
        const double log_sum = log_sum_exp(scores);
        logs[t] = static_cast<T>(log_sum);
        Doubles sums = zeros(g.size);
        for (int64_t j = 0; j < g.keys(t); ++j) {
          const double p = std::exp(scores[j] - log_sum);
          for (int64_t c = 0; c < g.size; ++c) sums[c] += p * v[j][c];
        }
        std::ranges::transform(sums, out[t], [](double s) { return static_cast<T>(s); });
      }
    });
  });
}

// With probabilities p: dv = p^T dy, dp = dy v^T, ds = p (dp - y . dy), dq = ds k, dk = ds^T q.
void Reference::attention_backward(const Tensor& qkv, const Tensor& y, const Tensor& lse,
                                   const Tensor& dy, Heads heads, Tensor& dqkv) const {
  const Geometry g(qkv, heads);
  by_type(qkv, [&]<typename T>(T) {
    Doubles sums = zeros(qkv.numel());
    g.each_head([&](int64_t n, int64_t head) {
      const T* const in = qkv.data<T>();
      const auto q = g.of_qkv(in, n, head, 0), k = g.of_qkv(in, n, head, 1),
                 v = g.of_qkv(in, n, head, 2);
      const auto out = g.of_y(y.data<T>(), n, head), d = g.of_y(dy.data<T>(), n, head);
      const auto dq = g.of_qkv(sums.data(), n, head, 0), dk = g.of_qkv(sums.data(), n, head, 1),
                 dv = g.of_qkv(sums.data(), n, head, 2);
      const T* const logs = lse.data<T>() + (n * heads.count + head) * g.times;
      for (int64_t t = 0; t < g.times; ++t) {
        const Doubles scores = scores_of(g, q[t], k, t);
        const double carried = dot(out[t], d[t], g.size);
        for (int64_t j = 0; j < g.keys(t); ++j) {
          const double p = std::exp(scores[j] - logs[t]);
          const double ds = g.scale * p * (dot(d[t], v[j], g.size) - carried);
          for (int64_t c = 0; c < g.size; ++c) {
            dv[j][c] += p * d[t][c];
            dq[t][c] += ds * k[j][c];
            dk[j][c] += ds * q[t][c];
          }
        }
      }
    });
    store<T>(sums, dqkv);
  });
}

}  // namespace howmany::backends
