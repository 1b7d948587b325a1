// SPDX-License-Identifier: Apache-2.0
// Memory of tensors. Blocks are aligned to 64 bytes. They return to a per-process pool when the
// last handle is destroyed: a training step needs the same sizes again, and fresh pages cost more
// than the arithmetic on them. GPU memory has its own pool, see gpu.h. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "core/tensor/device.h"

namespace howmany {

class Storage {
 public:
  Storage(int64_t bytes, Device device);
  // Wraps host memory that the caller allocated. Shares its ownership; does not pool it.
  Storage(std::shared_ptr<void> memory, int64_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  void touch() { version_.fetch_add(1, std::memory_order_relaxed); }
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  std::shared_ptr<void> attachment(int64_t offset) const;
  void set_attachment(int64_t offset, std::shared_ptr<void> value);

 private:
  std::shared_ptr<void> lent_;  // null if the memory is from the pool
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
  std::atomic<uint64_t> version_{0};
  mutable std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<void>> attachments_;
};

// Throws std::invalid_argument if this process has no such GPU. Does not create a CUDA context.
void require_here(Device device);

// Host memory in bytes: in use, cached in the pool for reuse, and the peak in use.
// release_cached_memory() returns the cached bytes to the system.
struct MemoryUse {
  int64_t in_use = 0, cached = 0, peak = 0;
};
MemoryUse memory_use();
void reset_peak_memory();
void release_cached_memory();

}  // namespace howmany
