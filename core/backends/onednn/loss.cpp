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

Tensor OneDnn::mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const {
  const auto factor = static_cast<float>(2 / denominator);
  const double sum = squared_error(y.data<float>(), target.data<float>(), factor, y.numel(),
                                   dy.mutable_data<float>());
  return loss_of(sum / denominator, y);
}

}  // namespace howmany::onednn
