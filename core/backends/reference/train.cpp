// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/backends/reference/reference.h"

// Losses and optimizer rules.
namespace howmany::backends {
namespace {

template <typename T>
void sgd_step(SgdParam& p, const SgdArgs& args) {
  T* w = p.value.mutable_data<T>();
  T* v = args.momentum != 0 ? p.velocity.mutable_data<T>() : nullptr;
  const T* g = p.grad.data<T>();
  for (int64_t i = 0; i < p.value.numel(); ++i) {
    double d = g[i] + args.weight_decay * w[i];
    if (v != nullptr) {
      v[i] = static_cast<T>(p.first_step ? d : args.momentum * v[i] + (1 - args.dampening) * d);
      d = args.nesterov ? d + args.momentum * v[i] : double{v[i]};
    }
    w[i] = static_cast<T>(w[i] - args.lr * d);
  }
}

template <typename T>
void adam_step(AdamParam& p, const AdamArgs& args) {
  const double step = static_cast<double>(p.step);
  const double correction1 = 1 - std::pow(args.beta1, step);
  const double correction2 = 1 - std::pow(args.beta2, step);
  T *w = p.value.mutable_data<T>(), *ms = p.m.mutable_data<T>(), *vs = p.v.mutable_data<T>();
  const T* gs = p.grad.data<T>();
  for (int64_t i = 0; i < p.value.numel(); ++i) {
    const double decayed = args.decoupled ? w[i] * (1 - args.lr * args.weight_decay) : w[i];
    const double g = args.decoupled ? gs[i] : gs[i] + args.weight_decay * w[i];
    ms[i] = static_cast<T>(args.beta1 * ms[i] + (1 - args.beta1) * g);
    vs[i] = static_cast<T>(args.beta2 * vs[i] + (1 - args.beta2) * g * g);
    const double root = std::sqrt(vs[i] / correction2) + args.epsilon;
    w[i] = static_cast<T>(decayed - args.lr * (ms[i] / correction1) / root);
  }
}

}  // namespace

Tensor Reference::softmax_cross_entropy(const Tensor& logits, const Tensor& labels,
                                        double denominator, Tensor& dlogits) const {
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  const int64_t* label = labels.data<int64_t>();
  double loss = 0;
  by_type(logits, [&]<typename T>(T) {
    T* out = dlogits.mutable_data<T>();
    for (int64_t n = 0; n < rows; ++n) {
      const auto row = logits.values<T>().subspan(n * classes, classes);
      const double top = *std::ranges::max_element(row);
      double sum = 0;
      for (T z : row) sum += std::exp(z - top);
      loss += (std::log(sum) - (row[label[n]] - top)) / denominator;
      for (int64_t k = 0; k < classes; ++k)
        out[n * classes + k] =
            static_cast<T>((std::exp(row[k] - top) / sum - (k == label[n] ? 1 : 0)) / denominator);
    }
  });
  return Tensor::full({1}, loss, Dtype::f64, logits.device());
}

void Reference::cross_entropy_part(const Tensor& logits, const Tensor& labels, int64_t first,
                                   Tensor& part) const {
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  by_type(logits, [&]<typename T>(T) {
    T* out = part.mutable_data<T>();
    for (int64_t n = 0; n < rows; ++n) {
      const auto row = logits.values<T>().subspan(n * classes, classes);
      const int64_t label = labels.data<int64_t>()[n] - first;
      const double top = *std::ranges::max_element(row);
      double sum = 0;
      for (T z : row) sum += std::exp(z - top);
      out[2 * n] = static_cast<T>(top + std::log(sum));
      out[2 * n + 1] = label >= 0 && label < classes ? row[label] : T{0};
    }
  });
}

Tensor Reference::cross_entropy_of_parts(const Tensor& logits, const Tensor& labels, int64_t first,
                                         const Tensor& all, double denominator,
                                         Tensor& dlogits) const {
  const int64_t rows = logits.shape()[0], classes = logits.shape()[1], ranks = all.shape()[0];
  double loss = 0;
  by_type(logits, [&]<typename T>(T) {
    for (int64_t n = 0; n < rows; ++n) {
      const T* parts = all.data<T>() + 2 * n;
      double top = parts[0], sum = 0, of_label = 0;
      for (int64_t r = 0; r < ranks; ++r) top = std::max<double>(top, parts[2 * r * rows]);
      for (int64_t r = 0; r < ranks; ++r) {
        sum += std::exp(parts[2 * r * rows] - top);
        of_label += parts[2 * r * rows + 1];
      }
      const double log_sum = top + std::log(sum);
      loss += (log_sum - of_label) / denominator;
      const int64_t label = labels.data<int64_t>()[n] - first;
      for (int64_t k = 0; k < classes; ++k) {
        const double z = logits.data<T>()[n * classes + k];
        dlogits.mutable_data<T>()[n * classes + k] =
            static_cast<T>((std::exp(z - log_sum) - (k == label ? 1 : 0)) / denominator);
      }
    }
  });
  return Tensor::full({1}, loss, Dtype::f64, logits.device());
}

Tensor Reference::mse(const Tensor& y, const Tensor& target, double denominator, Tensor& dy) const {
  double loss = 0;
  by_type(y, [&]<typename T>(T) {
    const T *ys = y.data<T>(), *targets = target.data<T>();
    T* out = dy.mutable_data<T>();
    for (int64_t i = 0; i < y.numel(); ++i) {
      const double off = double{ys[i]} - double{targets[i]};
      loss += off * off / denominator;
      out[i] = static_cast<T>(2 * off / denominator);
    }
  });
  return Tensor::full({1}, loss, Dtype::f64, y.device());
}

void Reference::sgd(std::span<SgdParam> params, const SgdArgs& args) const {
  for (SgdParam& p : params) by_type(p.value, [&]<typename T>(T) { sgd_step<T>(p, args); });
}

void Reference::adam(std::span<AdamParam> params, const AdamArgs& args) const {
  for (AdamParam& p : params) by_type(p.value, [&]<typename T>(T) { adam_step<T>(p, args); });
}

}  // namespace howmany::backends
