// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "core/nn/optim.h"
#include "core/nn/optim/by_device.h"
#include "core/profile/range.h"

namespace howmany::optim {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const OptimOptions& options) : Optimizer(options) {}

  void step(std::span<Param* const> params) override {
    const Range range(Category::optimizer, "sgd");
    std::vector<SgdParam> items;
    for (Param* p : params)
      if (p->has_grad) items.push_back(item_of(*p));
    const OptimOptions& o = options_;
    const SgdArgs args{o.lr, o.momentum, o.dampening, o.weight_decay, o.nesterov};
    by_device(std::move(items),
              [&](const Backend& backend, std::span<SgdParam> some) { backend.sgd(some, args); });
  }

 private:
  SgdParam item_of(Param& p) {
    const auto [found, first] = velocity_.try_emplace(&p);
    if (first && options_.momentum != 0)
      found->second = Tensor::zeros(p.shape, p.value.dtype(), p.value.device());
    return {p.value, p.grad, found->second, first};
  }

  std::unordered_map<const Param*, Tensor> velocity_;
};

}  // namespace

std::unique_ptr<Optimizer> sgd(const OptimOptions& options) {
  return std::make_unique<Sgd>(options);
}

}  // namespace howmany::optim
