// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/storage.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/tensor/meta.h"

namespace howmany {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max() / kAlignment * kAlignment;

// Never returns zero, so that an empty tensor has an address too. Returns at most kMostBytes, which
// no system can allocate.
int64_t rounded_up(int64_t bytes) {
  if (bytes > kMostBytes - kAlignment) return kMostBytes;  // the allocation fails
  return (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
}

// Free blocks by exact rounded size. Sanitizer builds never keep blocks, so that use after free is
// detected.
class Pool {
 public:
  void cancel(int64_t bytes) {
    std::lock_guard lock(mutex_);
    use_.in_use -= bytes;
  }

  void* take(int64_t bytes) {
    std::lock_guard lock(mutex_);
    use_.in_use += bytes;
    use_.peak = std::max(use_.peak, use_.in_use);
    auto& blocks = free_[bytes];
    if (blocks.empty()) return nullptr;
    void* block = blocks.back();
    blocks.pop_back();
    use_.cached -= bytes;
    return block;
  }

  // Returns true if the pool keeps the block.
  bool give(void* block, int64_t bytes) {
    std::lock_guard lock(mutex_);
    use_.in_use -= bytes;
#if HM_SANITIZED
    (void)block;
    return false;
#else
    free_[bytes].push_back(block);
    use_.cached += bytes;
    return true;
#endif
  }

  void clear() {
    std::lock_guard lock(mutex_);
    for (auto& [bytes, blocks] : free_)
      for (void* block : blocks) std::free(block);
    free_.clear();
    use_.cached = 0;
  }

  MemoryUse use() {
    std::lock_guard lock(mutex_);
    return use_;
  }

  void reset_peak() {
    std::lock_guard lock(mutex_);
    use_.peak = use_.in_use;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<int64_t, std::vector<void*>> free_;
  MemoryUse use_;
};

// Leaked: tensors with static storage may be destroyed after any static pool would be.
Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

void* from_system(int64_t bytes) {
  return std::aligned_alloc(kAlignment, static_cast<size_t>(bytes));
}

void* allocate(int64_t bytes) {
  if (void* const cached = pool().take(bytes)) return cached;
  if (void* const fresh = from_system(bytes)) return fresh;
  pool().clear();  // cached blocks of other sizes may hold the memory
  return from_system(bytes);
}

}  // namespace

void require_here(Device device) {
  if (device.type != DeviceType::cuda) return;
  const int gpus = gpu::count();
  HM_REQUIRE(gpus > 0, "{} cannot be used: {}", device.str(), gpu::unavailable());
  HM_REQUIRE(device.index < gpus, "{} is not here: the last GPU is cuda:{}", device.str(),
             gpus - 1);
}

Storage::Storage(int64_t bytes, Device device) : bytes_(rounded_up(bytes)), device_(device) {
  if (device.type == DeviceType::cuda) {
    require_here(device);
    lent_ = gpu::allocate(bytes_, device.index);
    data_ = lent_.get();
    return;
  }
  if (device.type == DeviceType::meta) {
    data_ = allocate_meta(bytes_, device.index);
    return;
  }
  data_ = allocate(bytes_);
  if (data_ != nullptr) return;
  pool().cancel(bytes_);
  throw Error(fmt::format("[storage] out of memory: {} bytes on {}", bytes_, device.str()));
}

Storage::Storage(std::shared_ptr<void> memory, int64_t bytes)
    : lent_(std::move(memory)), data_(lent_.get()), bytes_(bytes) {}

Storage::~Storage() {
  if (lent_) return;
  if (device_.type == DeviceType::meta)
    release_meta(bytes_, device_.index);
  else if (!pool().give(data_, bytes_))
    std::free(data_);
}

std::shared_ptr<void> Storage::attachment(int64_t offset) const {
  std::lock_guard lock(mutex_);
  const auto found = attachments_.find(offset);
  return found == attachments_.end() ? nullptr : found->second;
}

void Storage::set_attachment(int64_t offset, std::shared_ptr<void> value) {
  std::lock_guard lock(mutex_);
  std::swap(attachments_[offset], value);  // the old one is freed outside the map
}

MemoryUse memory_use() { return pool().use(); }
void reset_peak_memory() { pool().reset_peak(); }
void release_cached_memory() { pool().clear(); }

}  // namespace howmany
