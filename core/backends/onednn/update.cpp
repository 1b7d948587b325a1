#include <cmath>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"

// One pass over value, gradient and state.
namespace howmany::onednn {
namespace {

struct SgdStep {
  float lr, momentum, fresh, weight_decay;  // fresh: what of the gradient enters the velocity
  bool nesterov;
};

HM_SIMD void sgd_plain(const SgdStep s, const float* __restrict g, int64_t n, float* __restrict w) {
  for (int64_t i = 0; i < n; ++i) w[i] -= s.lr * (g[i] + s.weight_decay * w[i]);
}

HM_SIMD void sgd_first(const SgdStep s, const float* __restrict g, int64_t n, float* __restrict v,
                       float* __restrict w) {
  const float share = s.nesterov ? 1 + s.momentum : 1;
  for (int64_t i = 0; i < n; ++i) {
    v[i] = g[i] + s.weight_decay * w[i];
    w[i] -= s.lr * share * v[i];
  }
}

HM_SIMD void sgd_momentum(const SgdStep s, const float* __restrict g, int64_t n,
                          float* __restrict v, float* __restrict w) {
  for (int64_t i = 0; i < n; ++i) {
    const float d = g[i] + s.weight_decay * w[i];
    v[i] = s.momentum * v[i] + s.fresh * d;
    w[i] -= s.lr * (s.nesterov ? d + s.momentum * v[i] : v[i]);
  }
}

struct AdamStep {
  float beta1, rest1, beta2, rest2;  // rest: 1 - beta, rounded once
  float size, inv_root, epsilon, keep, weight_decay;
};

HM_SIMD void adam_step(const AdamStep s, const float* __restrict g, int64_t n, float* __restrict m,
                       float* __restrict v, float* __restrict w) {
  for (int64_t i = 0; i < n; ++i) {
    const float d = g[i] + s.weight_decay * w[i];
    m[i] = s.beta1 * m[i] + s.rest1 * d;
    v[i] = s.beta2 * v[i] + s.rest2 * d * d;
    w[i] = s.keep * w[i] - s.size * m[i] / (std::sqrt(v[i]) * s.inv_root + s.epsilon);
  }
}

}  // namespace

void OneDnn::sgd(Tensor& value, const Tensor& grad, Tensor& velocity, const SgdArgs& args) const {
  const SgdStep step{static_cast<float>(args.lr), static_cast<float>(args.momentum),
                     static_cast<float>(1 - args.dampening), static_cast<float>(args.weight_decay),
                     args.nesterov};
  float* w = value.mutable_data<float>();
  float* v = args.momentum != 0 ? velocity.mutable_data<float>() : nullptr;
  const float* g = grad.data<float>();
  parallel_for(value.numel(), 1, [&](int64_t i, int64_t end) {
    if (v == nullptr)
      sgd_plain(step, g + i, end - i, w + i);
    else
      (args.first_step ? sgd_first : sgd_momentum)(step, g + i, end - i, v + i, w + i);
  });
}

void OneDnn::adam(Tensor& value, const Tensor& grad, Tensor& m, Tensor& v,
                  const AdamArgs& args) const {
  const auto t = static_cast<double>(args.step);
  const double correction1 = 1 - std::pow(args.beta1, t), correction2 = 1 - std::pow(args.beta2, t);
  const AdamStep step{
      .beta1 = static_cast<float>(args.beta1),
      .rest1 = static_cast<float>(1 - args.beta1),
      .beta2 = static_cast<float>(args.beta2),
      .rest2 = static_cast<float>(1 - args.beta2),
      .size = static_cast<float>(args.lr / correction1),
      .inv_root = static_cast<float>(1 / std::sqrt(correction2)),
      .epsilon = static_cast<float>(args.epsilon),
      .keep = static_cast<float>(args.decoupled ? 1 - args.lr * args.weight_decay : 1),
      .weight_decay = static_cast<float>(args.decoupled ? 0 : args.weight_decay)};
  float *w = value.mutable_data<float>(), *ms = m.mutable_data<float>(),
        *vs = v.mutable_data<float>();
  const float* g = grad.data<float>();
  parallel_for(value.numel(), 1, [&](int64_t i, int64_t end) {
    adam_step(step, g + i, end - i, ms + i, vs + i, w + i);
  });
}

}  // namespace howmany::onednn
