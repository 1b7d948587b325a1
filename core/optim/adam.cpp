#include <unordered_map>

#include "core/backend.h"
#include "core/optim.h"
#include "core/profile/range.h"

namespace howmany::optim {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const OptimOptions& options, bool decoupled) : Optimizer(options), decoupled_(decoupled) {}

  void step(std::span<Param* const> params) override {
    const Range range(Category::optimizer, decoupled_ ? "adamw" : "adam");
    for (Param* p : params)
      if (p->has_grad) update(*p);
  }

 private:
  struct State {
    Tensor m, v;
    int64_t step = 0;
  };

  void update(Param& p) {
    State& s = state_[&p];
    if (s.step == 0) {
      s.m = Tensor::zeros(p.shape, p.value.dtype(), p.value.device());
      s.v = Tensor::zeros(p.shape, p.value.dtype(), p.value.device());
    }
    ++s.step;
    const OptimOptions& o = options_;
    backend_for(p.value).adam(
        p.value, p.grad, s.m, s.v,
        {o.lr, o.beta1, o.beta2, o.epsilon, o.weight_decay, decoupled_, s.step});
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
