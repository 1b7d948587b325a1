// Memory behind tensors. Blocks are 64-byte aligned and return to a per-process pool when the last
// handle goes, because a training step asks for the same sizes again and fresh pages cost more than
// the arithmetic on them. Those of a GPU are its pool's: see gpu.h. Thread-safe.
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
  // Somebody else's memory, kept for as long as this lives.
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
  std::shared_ptr<void> lent_;  // not of the pool
  void* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
  std::atomic<uint64_t> version_{0};
  mutable std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<void>> attachments_;
};

// Throws std::invalid_argument where this process has no such GPU. Asks nothing of it, as making a
// tensor there would: that takes memory of it for the process's context.
void require_here(Device device);

// Of the host: bytes handed out and bytes kept for reuse; release() gives the kept ones back to the
// system.
struct MemoryUse {
  int64_t in_use = 0, cached = 0, peak = 0;
};
MemoryUse memory_use();
void reset_peak_memory();
void release_cached_memory();

}  // namespace howmany
