// SPDX-License-Identifier: Apache-2.0
// Timed copies between GPU memory and other memory, for benches. Training copies tensors, or uses a
// gpu::Stream. A Copier is not thread-safe.
//
//   const gpu::HostBlock host(HostMemory::pinned, bytes, 0);
//   gpu::Copier copier(0);
//   copier.seconds_together({there, gpu, host.data(), Device{}, bytes}, 16);
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/gpu/stream.h"
#include "core/tensor/device.h"

namespace howmany {

// X(name, what)
#define HM_HOST_MEMORIES(X)                         \
  X(pageable, "as malloc gives it")                 \
  X(pinned, "page-locked, cudaHostAlloc")           \
  X(registered, "malloc's, page-locked afterwards") \
  X(write_combined, "page-locked, past the caches: for the CPU to write, never to read")

enum class HostMemory {
#define X(name, what) name,
  HM_HOST_MEMORIES(X)
#undef X
};
std::string_view name_of(HostMemory kind);

namespace gpu {

class HostBlock {
 public:
  HostBlock(HostMemory kind, int64_t bytes, int index);  // throws Error if there is no memory
  ~HostBlock();
  HostBlock(const HostBlock&) = delete;
  HostBlock& operator=(const HostBlock&) = delete;
  void* data() const { return data_; }

 private:
  const HostMemory kind_;
  const int index_;
  void* data_ = nullptr;
};

struct Copy {
  void* to = nullptr;
  Device to_device;
  const void* from = nullptr;
  Device from_device;
  int64_t bytes = 0;
};

// Returns true if one GPU can access the other's memory directly (CUDA peer access).
bool can_reach(int from, int to);

class Copier {
 public:
  explicit Copier(int index);  // the GPU whose streams and events are used
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void copy(const Copy& copy);  // blocks the host until the copy completes
  // Host time from the call until the host knows that the copy is complete.
  double seconds_alone(const Copy& copy);
  // Returns GPU time per copy of `times` copies on one stream. All are enqueued before the first
  // starts, as in nvbandwidth. 2 * times copies of `beside` run concurrently on a second stream.
  // Requires: no pageable memory, because the host takes part in such copies.
  double seconds_together(const Copy& copy, int times, const Copy* beside = nullptr);

 private:
  struct Streams;
  const int index_;
  const std::unique_ptr<Streams> streams_;
};

}  // namespace gpu
}  // namespace howmany
