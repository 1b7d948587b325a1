// SPDX-License-Identifier: Apache-2.0
// Groups parameters by device, for one backend call per device. Private to core/nn/optim.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/backends/backend.h"
#include "core/backends/selection.h"

namespace howmany::optim {

// Calls update(backend, items) once per device and dtype. Models that span several devices need
// several calls.
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
