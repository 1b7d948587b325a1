// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/backends/onednn/loops.h"
#include "core/backends/onednn/onednn.h"
#include "core/backends/update_f32.h"

// One pass over value, gradient and state, and one parallel region for all parameters.
namespace howmany::onednn {
namespace {

using backends::AdamScalars;
using backends::AdamSize;
using backends::SgdScalars;

HM_SIMD void sgd_plain(const SgdScalars s, const float* __restrict g, int64_t n,
                       float* __restrict w) {
  for (int64_t i = 0; i < n; ++i) w[i] -= s.lr * (g[i] + s.weight_decay * w[i]);
}

HM_SIMD void sgd_first(const SgdScalars s, const float* __restrict g, int64_t n,
                       float* __restrict v, float* __restrict w) {
  const float share = s.nesterov ? 1 + s.momentum : 1;
  for (int64_t i = 0; i < n; ++i) {
    v[i] = g[i] + s.weight_decay * w[i];
    w[i] -= s.lr * share * v[i];
  }
}

HM_SIMD void sgd_momentum(const SgdScalars s, const float* __restrict g, int64_t n,
                          float* __restrict v, float* __restrict w) {
  for (int64_t i = 0; i < n; ++i) {
    const float d = g[i] + s.weight_decay * w[i];
    v[i] = s.momentum * v[i] + s.fresh * d;
    w[i] -= s.lr * (s.nesterov ? d + s.momentum * v[i] : v[i]);
  }
}

HM_SIMD void adam_step(const AdamScalars s, const AdamSize z, const float* __restrict g, int64_t n,
                       float* __restrict m, float* __restrict v, float* __restrict w) {
  for (int64_t i = 0; i < n; ++i) {
    const float d = g[i] + s.weight_decay * w[i];
    m[i] = s.beta1 * m[i] + s.rest1 * d;
    v[i] = s.beta2 * v[i] + s.rest2 * d * d;
    w[i] = s.keep * w[i] - z.size * m[i] / (std::sqrt(v[i]) * z.inv_root + s.epsilon);
  }
}

// Pointers to a parameter's memory. The calling thread gets them before the parallel region.
struct SgdPart {
  float* w;
  float* v;
  const float* g;
  int64_t n;
  bool first;
};
struct AdamPart {
  float *w, *m, *v;
  const float* g;
  int64_t n;
  AdamSize size;
};

// Calls body(part, begin, end) on equal parts of the elements of all parameters, one per thread.
template <class Part, class Body>
void each_part(const std::vector<Part>& parts, Body&& body) {
  int64_t all = 0;
  for (const Part& part : parts) all += part.n;
  parallel_for(all, 1, [&](int64_t begin, int64_t end) {
    int64_t at = 0;
    for (const Part& part : parts) {
      const int64_t first = std::max<int64_t>(begin - at, 0), last = std::min(end - at, part.n);
      if (first < last) body(part, first, last);
      at += part.n;
    }
  });
}

}  // namespace

void OneDnn::sgd(std::span<SgdParam> params, const SgdArgs& args) const {
  const SgdScalars s(args);
  std::vector<SgdPart> parts;
  parts.reserve(params.size());
  for (SgdParam& p : params)
    parts.push_back({p.value.mutable_data<float>(),
                     args.momentum != 0 ? p.velocity.mutable_data<float>() : nullptr,
                     p.grad.data<float>(), p.value.numel(), p.first_step});
  each_part(parts, [&](const SgdPart& p, int64_t i, int64_t end) {
    if (p.v == nullptr)
      sgd_plain(s, p.g + i, end - i, p.w + i);
    else
      (p.first ? sgd_first : sgd_momentum)(s, p.g + i, end - i, p.v + i, p.w + i);
  });
}

void OneDnn::adam(std::span<AdamParam> params, const AdamArgs& args) const {
  const AdamScalars s(args);
  std::vector<AdamPart> parts;
  parts.reserve(params.size());
  for (AdamParam& p : params)
    parts.push_back({p.value.mutable_data<float>(), p.m.mutable_data<float>(),
                     p.v.mutable_data<float>(), p.grad.data<float>(), p.value.numel(),
                     AdamSize(args, p.step)});
  each_part(parts, [&](const AdamPart& p, int64_t i, int64_t end) {
    adam_step(s, p.size, p.g + i, end - i, p.m + i, p.v + i, p.w + i);
  });
}

}  // namespace howmany::onednn
