// SPDX-License-Identifier: Apache-2.0
#include "core/gpu/blocks.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/gpu/stream.h"

namespace howmany {

std::shared_ptr<Blocks> Blocks::pinned(int gpu, int64_t bytes) {
  return std::shared_ptr<Blocks>(new Blocks(gpu, bytes, true));
}

std::shared_ptr<Blocks> Blocks::on_gpu(int gpu, int64_t bytes) {
  return std::shared_ptr<Blocks>(new Blocks(gpu, bytes, false));
}

Blocks::Blocks(int gpu, int64_t bytes, bool pinned)
    : gpu_(gpu), bytes_(std::max<int64_t>(bytes, 1)), pinned_(pinned) {
  require_here({DeviceType::cuda, gpu});
}

std::shared_ptr<void> Blocks::take() {
  Block block;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      block = std::move(free_.front());
      free_.pop_front();
    }
  }
  if (!block.memory) block = fresh();
  void* const at = block.memory.get();
  std::shared_ptr<void> taken(at, [home = shared_from_this(), memory = std::move(block.memory)](
                                      void*) mutable { home->give(std::move(memory)); });
  if (block.read) gpu::finish(block.read);
  return taken;
}

int64_t Blocks::made() const {
  const std::lock_guard lock(mutex_);
  return made_;
}

// A GPU block from the pool is valid for work that is enqueued next on the device's stream. Other
// streams wait for the event.
Blocks::Block Blocks::fresh() {
  Block block;
  block.memory = pinned_ ? gpu::allocate_pinned(bytes_, gpu_) : gpu::allocate(bytes_, gpu_);
  const std::lock_guard lock(mutex_);
  ++made_;
  if (!pinned_) block.read = gpu::record_event(gpu_);
  return block;
}

// If the event cannot be recorded, the runtime has ended or failed, so the block is not reused.
void Blocks::give(std::shared_ptr<void> memory) noexcept try {
  const std::shared_ptr<void> read = pinned_ ? nullptr : gpu::record_event(gpu_);
  const std::lock_guard lock(mutex_);
  free_.push_back({std::move(memory), read});
} catch (const std::exception&) {
}

}  // namespace howmany
