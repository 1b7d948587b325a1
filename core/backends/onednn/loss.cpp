// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"
#include "core/backends/onednn/version.h"

namespace howmany::onednn {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct SoftmaxKey {
  int64_t rows, classes;
  int threads;
  auto operator<=>(const SoftmaxKey&) const = default;
};

Desc desc_of(const SoftmaxKey& key) { return f32_desc({key.rows, key.classes}, FormatTag::ab); }

struct Softmax {
  explicit Softmax(const SoftmaxKey& key)
      : kernel(describe<SoftmaxForward>(dnnl::prop_kind::forward_inference,
                                        dnnl::algorithm::softmax_accurate, desc_of(key),
                                        desc_of(key), 1)) {}
  Kernel kernel;
};

HM_SIMD double squared_error(const float* __restrict y, const float* __restrict target,
                             float factor, int64_t n, float* __restrict dy) {
  double loss = 0;
#pragma omp simd reduction(+ : loss)
  for (int64_t i = 0; i < n; ++i) {
    const float off = y[i] - target[i];
    loss += static_cast<double>(off) * static_cast<double>(off);
    dy[i] = factor * off;
  }
  return loss;
}

Tensor loss_of(double value, const Tensor& like) {
  return Tensor::full({1}, value, Dtype::f64, like.device());
}

// Returns the index of the first NaN, else that of the largest value.
int64_t top_of(const float* z, int64_t classes) {
  int64_t top = 0;
  for (int64_t k = 0; k < classes; ++k) {
    if (std::isnan(z[k])) return k;
    if (z[k] > z[top]) top = k;
  }
  return top;
}

HM_SIMD float log_sum_of(const float* __restrict z, int64_t classes) {
  float top = z[0];
#pragma omp simd reduction(max : top)
  for (int64_t k = 0; k < classes; ++k) top = std::max(top, z[k]);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < classes; ++k) sum += exp_of(z[k] - top);
  return top + std::log(sum);
}

HM_SIMD void softmax_of(const float* __restrict z, float log_sum, float factor, int64_t classes,
                        float* __restrict d) {
  for (int64_t k = 0; k < classes; ++k) d[k] = factor * exp_of(z[k] - log_sum);
}

struct Joined {
  double log_sum, of_label;
};

// `parts` are those of one row.
Joined join(const float* parts, int64_t ranks, int64_t stride) {
  double top = static_cast<double>(parts[0]), sum = 0, of_label = 0;
  for (int64_t r = 0; r < ranks; ++r) top = std::max<double>(top, parts[r * stride]);
  for (int64_t r = 0; r < ranks; ++r) {
    sum += std::exp(static_cast<double>(parts[r * stride]) - top);
    of_label += static_cast<double>(parts[r * stride + 1]);
  }
  return {top + std::log(sum), of_label};
}

}  // namespace

// dlogits first holds the softmax. Its largest value, at logit z, yields the log of the sum of
// exponentials as z - log(value). This is accurate, because that value is at least 1 / classes.
Tensor OneDnn::softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double denominator,
                                     Tensor& dlogits) const {
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  if (logits.numel() == 0) return loss_of(0, logits);
  cached<Softmax>(SoftmaxKey{rows, classes, omp_get_max_threads()})
      .kernel.run({{DNNL_ARG_SRC, logits.raw()}, {DNNL_ARG_DST, dlogits.mutable_raw()}});
  const auto factor = static_cast<float>(1 / denominator);
  const int64_t* label = labels.data<int64_t>();
  double loss = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const float* z = logits.data<float>() + row * classes;
    float* d = dlogits.mutable_data<float>() + row * classes;
    const int64_t top = top_of(z, classes);
    if (!(z[top] < std::numeric_limits<float>::infinity())) {  // the softmax is undefined
      loss = kNaN;
      std::fill_n(d, classes, kNaN);
      continue;
    }
    const double log_sum = static_cast<double>(z[top]) - std::log(static_cast<double>(d[top]));
    loss += (log_sum - static_cast<double>(z[label[row]])) / denominator;
    d[label[row]] -= 1;
    for (int64_t k = 0; k < classes; ++k) d[k] *= factor;
  }
  return loss_of(loss, logits);
}

void OneDnn::cross_entropy_part(const Tensor& logits, const Tensor& labels, int64_t first,
                                Tensor& part) const {
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  const float* z = logits.data<float>();
  const int64_t* label = labels.data<int64_t>();
  float* out = part.mutable_data<float>();
  parallel_for(rows, classes, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t own = label[n] - first;
      out[2 * n] = log_sum_of(z + n * classes, classes);
      out[2 * n + 1] = own >= 0 && own < classes ? z[n * classes + own] : 0;
    }
  });
}

Tensor OneDnn::cross_entropy_of_parts(const Tensor& logits, const Tensor& labels, int64_t first,
                                      const Tensor& all, double denominator,
                                      Tensor& dlogits) const {
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1], ranks = all.shape()[0];
  std::vector<float> log_sums(static_cast<size_t>(rows));
  double loss = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const Joined joined = join(all.data<float>() + 2 * n, ranks, 2 * rows);
    log_sums[static_cast<size_t>(n)] = static_cast<float>(joined.log_sum);
    loss += (joined.log_sum - joined.of_label) / denominator;
  }
  const auto factor = static_cast<float>(1 / denominator);
  const float* z = logits.data<float>();
  const int64_t* label = labels.data<int64_t>();
  float* d = dlogits.mutable_data<float>();
  parallel_for(rows, classes, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t own = label[n] - first;
      softmax_of(z + n * classes, log_sums[static_cast<size_t>(n)], factor, classes,
                 d + n * classes);
      if (own >= 0 && own < classes) d[n * classes + own] -= factor;
    }
  });
  return loss_of(loss, logits);
}

Tensor OneDnn::mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const {
  const auto factor = static_cast<float>(2 / denominator);
  const double sum = squared_error(y.data<float>(), target.data<float>(), factor, y.numel(),
                                   dy.mutable_data<float>());
  return loss_of(sum / denominator, y);
}

}  // namespace howmany::onednn
