// Copies between a GPU's memory and others, and what they take: for benches. Training copies
// tensors, or by a gpu::Stream. A Copier belongs to one thread.
//
//   const gpu::HostBlock host(HostMemory::pinned, bytes, 0);
//   gpu::Copier copier(0);
//   copier.seconds_together({there, gpu, host.data(), Device{}, bytes}, 16);
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

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
  HostBlock(HostMemory kind, int64_t bytes, int index);  // throws Error when there is none
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

// Whether one GPU reads the other's memory without the host between.
bool can_reach(int from, int to);

class Copier {
 public:
  explicit Copier(int index);  // the GPU whose clock tells
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void copy(const Copy& copy);  // returns when it has arrived
  // By the host's clock, from the call until the host knows that it has arrived.
  double seconds_alone(const Copy& copy);
  // By the GPU's clock, of one of so many copies that wait for each other alone: all are asked for
  // before the first begins (as nvbandwidth has it), with twice as many of `beside` at the same
  // time. None from or to pageable memory, for which the host itself has to work.
  double seconds_together(const Copy& copy, int times, const Copy* beside = nullptr);

 private:
  struct Streams;
  const int index_;
  const std::unique_ptr<Streams> streams_;
};

}  // namespace gpu
}  // namespace howmany
