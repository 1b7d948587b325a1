// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <memory>

#include "core/backends/cuda/runtime/runtime.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/gpu/copies.h"

namespace howmany::gpu {
namespace {

constexpr size_t kPage = 4096;

size_t whole_pages(int64_t bytes) {
  return (static_cast<size_t>(bytes) + kPage - 1) / kPage * kPage;
}

void* pages(int64_t bytes) {
  void* const block = std::aligned_alloc(kPage, whole_pages(bytes));
  HM_ENSURE(block != nullptr, "[gpu] no memory for {} bytes on the host", bytes);
  return block;
}

void* allocated(unsigned flags, int64_t bytes) {
  void* block = nullptr;
  cuda::check(cudaHostAlloc(&block, static_cast<size_t>(bytes), flags), "pinned memory");
  return block;
}

void* registered(int64_t bytes) {
  void* const block = pages(bytes);
  const cudaError_t error = cudaHostRegister(block, whole_pages(bytes), cudaHostRegisterDefault);
  if (error != cudaSuccess) std::free(block);
  cuda::check(error, "registering memory");
  return block;
}

void enqueue(const Copy& c, cudaStream_t stream) {
  const bool to_gpu = c.to_device.type == DeviceType::cuda;
  const bool from_gpu = c.from_device.type == DeviceType::cuda;
  const auto bytes = static_cast<size_t>(c.bytes);
  if (to_gpu && from_gpu)
    return cuda::copy_between(c.to, c.to_device.index, c.from, c.from_device.index, bytes, stream);
  const cudaMemcpyKind kind = to_gpu ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  cuda::check(cudaMemcpyAsync(c.to, c.from, bytes, kind, stream), "copy");
}

// Work that is enqueued behind the gate starts when the gate opens.
class Gate {
  using Open = std::shared_ptr<std::atomic<bool>>;

 public:
  ~Gate() { open(); }
  void before(cudaStream_t stream) const {
    const auto wait = [](void* held) {
      const std::unique_ptr<Open> open(static_cast<Open*>(held));
      (*open)->wait(false);
    };
    auto held = std::make_unique<Open>(open_);
    cuda::check(cudaLaunchHostFunc(stream, wait, held.get()), "host function");
    held.release();
  }
  void open() const {
    *open_ = true;
    open_->notify_all();
  }

 private:
  const Open open_ = std::make_shared<std::atomic<bool>>(false);
};

double seconds_between(const std::shared_ptr<CUevent_st>& begin,
                       const std::shared_ptr<CUevent_st>& end) {
  float milliseconds = 0;
  cuda::check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "time between events");
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace

HostBlock::HostBlock(HostMemory kind, int64_t bytes, int index) : kind_(kind), index_(index) {
  const cuda::CurrentDevice on(index);
  if (kind == HostMemory::pageable) data_ = pages(bytes);
  if (kind == HostMemory::registered) data_ = registered(bytes);
  if (kind == HostMemory::pinned) data_ = allocated(cudaHostAllocDefault, bytes);
  if (kind == HostMemory::write_combined) data_ = allocated(cudaHostAllocWriteCombined, bytes);
}

HostBlock::~HostBlock() {
  try {
    const cuda::CurrentDevice on(index_);
    if (kind_ == HostMemory::registered) cudaHostUnregister(data_);
    const bool ours = kind_ == HostMemory::pageable || kind_ == HostMemory::registered;
    ours ? std::free(data_) : static_cast<void>(cudaFreeHost(data_));
    cudaGetLastError();
  } catch (const std::exception&) {
    // The runtime has ended and freed it.
  }
}

bool can_reach(int from, int to) {
  int can = 0;
  cuda::check(cudaDeviceCanAccessPeer(&can, to, from), "peer access");
  return can != 0;
}

struct Copier::Streams {
  Streams() {
    for (cudaStream_t* s : {&main, &other})
      cuda::check(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking), "stream");
  }
  ~Streams() {
    for (const cudaStream_t s : {main, other}) cudaStreamDestroy(s);
    cudaGetLastError();
  }
  void finish() const {
    for (const cudaStream_t s : {main, other}) cuda::check(cudaStreamSynchronize(s), "copy");
  }
  cudaStream_t main = nullptr, other = nullptr;
};

Copier::Copier(int index)
    : index_(index), streams_((cuda::CurrentDevice(index), std::make_unique<Streams>())) {}

Copier::~Copier() = default;

void Copier::copy(const Copy& copy) {
  const cuda::CurrentDevice on(index_);
  enqueue(copy, streams_->main);
  cuda::check(cudaStreamSynchronize(streams_->main), "copy");
}

double Copier::seconds_alone(const Copy& one) {
  const Clock::time_point start = Clock::now();
  copy(one);
  return seconds_since(start);
}

double Copier::seconds_together(const Copy& copy, int times, const Copy* beside) {
  const cuda::CurrentDevice on(index_);
  const Gate gate;  // one for both streams, because their host functions may run sequentially
  if (beside != nullptr) {
    gate.before(streams_->other);
    for (int i = 0; i < 2 * times; ++i) enqueue(*beside, streams_->other);
  }
  gate.before(streams_->main);
  const auto begin = cuda::recorded(streams_->main, cudaEventDefault);
  for (int i = 0; i < times; ++i) enqueue(copy, streams_->main);
  const auto end = cuda::recorded(streams_->main, cudaEventDefault);
  gate.open();
  streams_->finish();
  return seconds_between(begin, end) / times;
}

}  // namespace howmany::gpu
