// Parameters given to their backends: in one call for all that lie on one device. Private to
// core/nn/optim.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/backends/backend.h"

namespace howmany::optim {

// update(backend, those of one device and type) until all had their turn; a model over several
// devices takes several.
template <typename Item, typename Update>
void by_device(std::vector<Item> items, Update update) {
  for (auto begin = items.begin(); begin != items.end();) {
    const Tensor first = begin->value;
    const auto end = std::stable_partition(begin, items.end(), [&](const Item& item) {
      return item.value.device() == first.device() && item.value.dtype() == first.dtype();
    });
    update(backend_for(first), std::span<Item>(begin, end));
    begin = end;
  }
}

}  // namespace howmany::optim
