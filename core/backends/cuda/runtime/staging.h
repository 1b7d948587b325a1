// Pinned blocks of the host that copies to a GPU pass through: the caller's memory is free again at
// once, and the copy goes on beside the processor. A block is taken again when its copy is done.
// Thread-safe. Private to core/backends/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <mutex>
#include <vector>

namespace howmany::cuda {

constexpr size_t kMostStaged = size_t{64} << 20;  // larger ones are copied in place, and waited for

// Powers of two from 4 KiB, so that few sizes serve all.
size_t staged_size(size_t bytes);

class Staging {
 public:
  struct Block {
    void* host = nullptr;
    size_t bytes = 0;
    cudaEvent_t done = nullptr;
  };

  Staging() = default;
  ~Staging();  // of the blocks given back
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  Block take(size_t bytes);  // with that device current, whose event it makes
  // After the copy was asked for on `stream`.
  void give(Block block, cudaStream_t stream);
  size_t held() const;  // blocks

 private:
  mutable std::mutex mutex_;
  std::vector<Block> blocks_;  // oldest first
};

// Those of a device, because an event belongs to one.
Staging& staging(int index);

}  // namespace howmany::cuda
