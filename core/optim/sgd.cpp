#include <unordered_map>

#include "core/backend.h"
#include "core/optim.h"
#include "core/profile/range.h"

namespace howmany::optim {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimOptions& options) : Optimizer(options) {}

  void step(std::span<Param* const> params) override {
    const Range range(Category::optimizer, "sgd");
    for (Param* p : params)
      if (p->has_grad) update(*p);
  }

 private:
  void update(Param& p) {
    const auto [found, first] = velocity_.try_emplace(&p);
    if (first && options_.momentum != 0)
      found->second = Tensor::zeros(p.shape, p.value.dtype(), p.value.device());
    const OptimOptions& o = options_;
    backend_for(p.value).sgd(p.value, p.grad, found->second,
                             {o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov, first});
  }

  std::unordered_map<const Param*, Tensor> velocity_;
};

}  // namespace

std::unique_ptr<Optimizer> sgd(const OptimOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace howmany::optim
