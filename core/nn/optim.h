// SPDX-License-Identifier: Apache-2.0
// Optimizers. step(params) reads gradients and updates values. It never changes a gradient and
// never communicates. Update rules, names and defaults are those of torch.optim. State is stored
// per Param address. Not thread-safe.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/nn/layer.h"

namespace howmany {

struct OptimOptions {
  double lr = 0.1;
  double momentum = 0, dampening = 0, weight_decay = 0;  // sgd
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // adam, adamw
};

// One line per optimizer: X(name, "rule").
#define HM_OPTIMIZERS(X)                                    \
  X(sgd, "stochastic gradient descent, momentum, Nesterov") \
  X(adam, "Adam; weight decay is added to the gradient")    \
  X(adamw, "Adam with decoupled weight decay")

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void step(std::span<Param* const> params) = 0;
  void set_lr(double lr) { options_.lr = lr; }

 protected:
  explicit Optimizer(OptimOptions options) : options_(options) {}
  OptimOptions options_;
};

std::vector<std::string_view> optimizer_names();
// Throws std::invalid_argument if the name is unknown (the nearest is suggested) or an option is
// out of range.
std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const OptimOptions& options);

namespace optim {
#define X(name, what) std::unique_ptr<Optimizer> name(const OptimOptions& options);
HM_OPTIMIZERS(X)
#undef X
}  // namespace optim

}  // namespace howmany
