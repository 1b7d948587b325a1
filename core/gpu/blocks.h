// SPDX-License-Identifier: Apache-2.0
// A pool of blocks of equal size: pinned host memory, or memory of one GPU. Loaders keep batches in
// it, and Comms their staged tensors.
//
// Reuse. A block is free again once its last handle is destroyed. A block of a GPU is reused only
//   after the work that was enqueued on the GPU by then.
// Ownership. Handles may outlive the Blocks object.
// Thread safety. Thread-safe.
//
//   auto blocks = Blocks::on_gpu(0, bytes);
//   std::shared_ptr<void> block = blocks->take();
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace howmany {

class Blocks : public std::enable_shared_from_this<Blocks> {
 public:
  // Blocks of `bytes` bytes for copies to or from GPU `gpu`. Throws std::invalid_argument if there
  // is no such GPU.
  static std::shared_ptr<Blocks> pinned(int gpu, int64_t bytes);
  static std::shared_ptr<Blocks> on_gpu(int gpu, int64_t bytes);
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // Returns a block that may be written at once: blocks the host until earlier readers of the block
  // are done. Throws Error if there is no memory.
  std::shared_ptr<void> take();
  int64_t made() const;  // number of blocks allocated so far

 private:
  struct Block {
    std::shared_ptr<void> memory;
    std::shared_ptr<void> read;  // event (gpu::record_event) after its last reader
  };

  Blocks(int gpu, int64_t bytes, bool pinned);
  Block fresh();
  void give(std::shared_ptr<void> memory) noexcept;

  const int gpu_;
  const int64_t bytes_;
  const bool pinned_;
  mutable std::mutex mutex_;
  std::deque<Block> free_;  // oldest first
  int64_t made_ = 0;
};

}  // namespace howmany
