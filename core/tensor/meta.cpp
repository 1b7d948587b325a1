// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/meta.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "core/base/error.h"

namespace howmany {
namespace {

constexpr uintptr_t kFirstAddress = uintptr_t{1} << 62;  // beyond what a process may map

struct Devices {
  std::mutex mutex;
  uintptr_t next = kFirstAddress;
  std::map<int, MemoryUse> use;
};

// Leaked: tensors with static storage may be destroyed later.
Devices& devices() {
  static Devices* const all = new Devices;
  return *all;
}

}  // namespace

MemoryUse meta_memory_use(int index) {
  std::lock_guard lock(devices().mutex);
  return devices().use[index];
}

void reset_meta_peak(int index) {
  std::lock_guard lock(devices().mutex);
  MemoryUse& use = devices().use[index];
  use.peak = use.in_use;
}

void* allocate_meta(int64_t bytes, int index) {
  Devices& all = devices();
  std::lock_guard lock(all.mutex);
  HM_REQUIRE(static_cast<uintptr_t>(bytes) < UINTPTR_MAX - all.next, "[storage] {} bytes", bytes);
  MemoryUse& use = all.use[index];
  use.in_use += bytes;
  use.peak = std::max(use.peak, use.in_use);
  void* const address = reinterpret_cast<void*>(all.next);
  all.next += static_cast<uintptr_t>(bytes);
  return address;
}

void release_meta(int64_t bytes, int index) {
  std::lock_guard lock(devices().mutex);
  devices().use[index].in_use -= bytes;
}

}  // namespace howmany
