// SPDX-License-Identifier: Apache-2.0
#include "core/nn/optim.h"

#include "core/base/error.h"
#include "core/base/text/names.h"

namespace howmany {
namespace {

void check_options(std::string_view name, const OptimOptions& o) {
  HM_REQUIRE(o.lr >= 0, "[{}] lr is {}, expected 0 or more", name, o.lr);
  HM_REQUIRE(o.momentum >= 0, "[{}] momentum is {}, expected 0 or more", name, o.momentum);
  HM_REQUIRE(o.weight_decay >= 0, "[{}] weight_decay is {}, expected 0 or more", name,
             o.weight_decay);
  HM_REQUIRE(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
             "[{}] nesterov wants momentum above 0 and dampening 0, not {} and {}", name,
             o.momentum, o.dampening);
  HM_REQUIRE(o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1,
             "[{}] betas are {} and {}, expected within [0, 1)", name, o.beta1, o.beta2);
  HM_REQUIRE(o.epsilon >= 0, "[{}] epsilon is {}, expected 0 or more", name, o.epsilon);
}

}  // namespace

std::vector<std::string_view> optimizer_names() {
  return {
#define X(name, what) #name,
      HM_OPTIMIZERS(X)
#undef X
  };
}

std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const OptimOptions& options) {
  check_options(name, options);
#define X(id, what) \
  if (name == #id) return optim::id(options);
  HM_OPTIMIZERS(X)
#undef X
  throw std::invalid_argument("[optimizer] " + unknown_name("optimizer", name, optimizer_names()));
}

}  // namespace howmany
