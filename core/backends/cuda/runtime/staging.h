// SPDX-License-Identifier: Apache-2.0
// Pinned staging blocks for copies from the host to a GPU. The caller may reuse its memory at once,
// and the copy is asynchronous. A block is reused once its copy is complete. Thread-safe. Private
// to core/backends/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <mutex>
#include <vector>

namespace howmany::cuda {

constexpr size_t kMaxStaged = size_t{64} << 20;  // larger copies are not staged, and block

// Returns the block size for `bytes`: a power of two, at least 4 KiB.
size_t staged_size(size_t bytes);

class Staging {
 public:
  struct Block {
    void* host = nullptr;
    size_t bytes = 0;
    cudaEvent_t done = nullptr;
  };

  Staging() = default;
  ~Staging();  // frees the blocks that were given back
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  Block take(size_t bytes);  // requires that the device is current
  // Call it after the copy was enqueued on `stream`.
  void give(Block block, cudaStream_t stream);
  size_t held() const;  // blocks

 private:
  mutable std::mutex mutex_;
  std::vector<Block> blocks_;  // oldest first
};

// Returns the blocks of a device. They are per device because an event belongs to one device.
Staging& staging(int index);

}  // namespace howmany::cuda
