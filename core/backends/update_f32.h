// SPDX-License-Identifier: Apache-2.0
// Scalars of the rules of core/ops/update.h for f32 kernels: computed in f64 and rounded once.
// Private to core/backends.
#pragma once

#include <cmath>

#include "core/ops/update.h"

namespace howmany::backends {

// d = grad + weight_decay w; v = momentum v + fresh d; w -= lr (nesterov ? d + momentum v : v).
// Without a velocity: w -= lr d.
struct SgdScalars {
  explicit SgdScalars(const SgdArgs& a)
      : lr(static_cast<float>(a.lr)),
        momentum(static_cast<float>(a.momentum)),
        fresh(static_cast<float>(1 - a.dampening)),
        weight_decay(static_cast<float>(a.weight_decay)),
        nesterov(a.nesterov) {}
  float lr, momentum, fresh, weight_decay;
  bool nesterov;
};

// g = grad + weight_decay w; m = beta1 m + rest1 g; v = beta2 v + rest2 g g;
// w = keep w - size m / (sqrt(v) inv_root + epsilon); size and inv_root are of AdamSize.
struct AdamScalars {
  explicit AdamScalars(const AdamArgs& a)
      : beta1(static_cast<float>(a.beta1)),
        rest1(static_cast<float>(1 - a.beta1)),
        beta2(static_cast<float>(a.beta2)),
        rest2(static_cast<float>(1 - a.beta2)),
        epsilon(static_cast<float>(a.epsilon)),
        keep(static_cast<float>(a.decoupled ? 1 - a.lr * a.weight_decay : 1)),
        weight_decay(static_cast<float>(a.decoupled ? 0 : a.weight_decay)) {}
  float beta1, rest1, beta2, rest2, epsilon, keep, weight_decay;
};

struct AdamSize {  // bias corrections of the moments, for one parameter's step
  AdamSize(const AdamArgs& a, int64_t step)
      : size(static_cast<float>(a.lr / (1 - std::pow(a.beta1, static_cast<double>(step))))),
        inv_root(
            static_cast<float>(1 / std::sqrt(1 - std::pow(a.beta2, static_cast<double>(step))))) {}
  float size, inv_root;
};

}  // namespace howmany::backends
