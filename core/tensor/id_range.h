// SPDX-License-Identifier: Apache-2.0
// The range of ids or labels in a GPU tensor. The host records it when it sends them. Range checks
// then need no copy to the host, which would wait for all work that is enqueued on the GPU.
// Stored in Tensor::attachment(), so thread-safe as that is.
//
//   const Tensor ids = on_host.to(Device::parse("cuda:0"));   // records the range
//   if (const auto known = known_range(ids); known && known->most < bound) ...
#pragma once

#include <optional>

#include "core/tensor/tensor.h"

namespace howmany {

struct IdRange {
  int64_t least = 0, most = 0;
};

// Requires: `sent` is a whole i64 tensor on a GPU and a copy of `host`.
void remember_range(const Tensor& sent, const Tensor& host);
// For code that writes ids into a GPU tensor itself. The range holds until the tensor is written
// again.
void remember_range(const Tensor& ids, IdRange range);
// Returns the range recorded for the tensor that starts at the same offset. Returns nullopt if none
// is recorded or the tensor was written since.
std::optional<IdRange> known_range(const Tensor& ids);

}  // namespace howmany
