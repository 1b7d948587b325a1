// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/graph/memory.h"

#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda {

GraphMemory::~GraphMemory() {
  for (const auto& [size, block] : free_) give_to_pool(block, index_);
}

std::shared_ptr<void> GraphMemory::take(size_t bytes) {
  return {block_of(bytes), [home = shared_from_this()](void* block) { home->give(block); }};
}

// A step needs the same few sizes again and again, so blocks are not divided. A block that is up to
// a quarter larger serves as well.
void* GraphMemory::block_of(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = free_.lower_bound(bytes);
  if (found == free_.end() || found->first > bytes + bytes / 4) {
    void* const fresh = take_from_pool(bytes, index_);
    sizes_.emplace(fresh, bytes);
    return fresh;
  }
  void* const block = found->second;
  free_.erase(found);
  return block;
}

void GraphMemory::give(void* block) noexcept {
  const std::lock_guard lock(mutex_);
  free_.emplace(sizes_.at(block), block);
}

bool GraphMemory::holds(const void* block) const {
  const std::lock_guard lock(mutex_);
  return sizes_.contains(block);
}

}  // namespace howmany::cuda
