// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "core/nn/optim.h"
#include "core/nn/optim/by_device.h"
#include "core/profile/range.h"

namespace howmany::optim {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const OptimOptions& options, bool decoupled) : Optimizer(options), decoupled_(decoupled) {}

  void step(std::span<Param* const> params) override {
    const Range range(Category::optimizer, decoupled_ ? "adamw" : "adam");
    std::vector<AdamParam> items;
    for (Param* p : params)
      if (p->has_grad) items.push_back(item_of(*p));
    const OptimOptions& o = options_;
    const AdamArgs args{o.lr, o.beta1, o.beta2, o.epsilon, o.weight_decay, decoupled_};
    by_device(std::move(items),
              [&](const Backend& backend, std::span<AdamParam> some) { backend.adam(some, args); });
  }

 private:
  struct State {
    Tensor m, v;
    int64_t step = 0;
  };

  AdamParam item_of(Param& p) {
    State& s = state_[&p];
    if (s.step == 0) {
      s.m = Tensor::zeros(p.shape, p.value.dtype(), p.value.device());
      s.v = Tensor::zeros(p.shape, p.value.dtype(), p.value.device());
    }
    return {p.value, p.grad, s.m, s.v, ++s.step};
  }

  bool decoupled_;
  std::unordered_map<const Param*, State> state_;
};

}  // namespace

std::unique_ptr<Optimizer> adam(const OptimOptions& options) {
  return std::make_unique<Adam>(options, false);
}

std::unique_ptr<Optimizer> adamw(const OptimOptions& options) {
  return std::make_unique<Adam>(options, true);
}

}  // namespace howmany::optim
