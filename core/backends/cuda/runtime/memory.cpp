// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <ranges>

#include "core/backends/cuda/graph/capture.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/backends/cuda/runtime/staging.h"
#include "core/base/error.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"

namespace howmany {
namespace cuda {

size_t staged_size(size_t bytes) { return std::bit_ceil(std::max(bytes, size_t{4096})); }

Staging::~Staging() {
  for (const Block& block : blocks_) {
    cudaEventDestroy(block.done);
    cudaFreeHost(block.host);
  }
}

Staging::Block Staging::take(size_t bytes) {
  const size_t size = staged_size(bytes);
  {
    const std::lock_guard lock(mutex_);
    const auto free = std::ranges::find_if(blocks_, [&](const Block& b) {
      return b.bytes == size && cudaEventQuery(b.done) == cudaSuccess;
    });
    if (free != blocks_.end()) {
      const Block block = *free;
      blocks_.erase(free);
      cudaGetLastError();  // clears "not ready" of another block
      return block;
    }
  }
  cudaGetLastError();
  Block block{.bytes = size};
  check(cudaMallocHost(&block.host, size), "pinned memory");
  check(cudaEventCreateWithFlags(&block.done, cudaEventDisableTiming), "event");
  return block;
}

void Staging::give(Block block, cudaStream_t stream) {
  check(cudaEventRecord(block.done, stream), "event");
  const std::lock_guard lock(mutex_);
  blocks_.push_back(block);
}

size_t Staging::held() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size();
}

// Leaked, as the memory pools are.
Staging& staging(int index) {
  static auto* const all = new std::array<Staging, 64>;
  return all->at(static_cast<size_t>(index));
}

namespace {

void to_gpu(void* to, int index, const void* from, size_t bytes) {
  refuse_in_capture("a copy from the host");
  const OnDevice on(index);
  if (bytes > kMaxStaged) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, on.stream()), "copy to device");
    return check(cudaStreamSynchronize(on.stream()), "copy to device");
  }
  const Staging::Block block = staging(index).take(bytes);
  std::memcpy(block.host, from, bytes);
  check(cudaMemcpyAsync(to, block.host, bytes, cudaMemcpyHostToDevice, on.stream()),
        "copy to device");
  staging(index).give(block, on.stream());
}

void to_host(void* to, const void* from, int index, size_t bytes) {
  refuse_in_capture("a copy to the host");
  const OnDevice on(index);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, on.stream()), "copy to host");
  check(cudaStreamSynchronize(on.stream()), "copy to host");
}

// Copies after the source's earlier work, and before its later work, which could overwrite it.
void between(void* to, int to_index, const void* from, int from_index, size_t bytes) {
  if (to_index != from_index) gpu::wait_for(to_index, gpu::record_event(from_index));
  {
    const OnDevice on(to_index);
    copy_between(to, to_index, from, from_index, bytes, on.stream());
  }
  if (to_index != from_index) gpu::wait_for(from_index, gpu::record_event(to_index));
}

int64_t attribute(int index, cudaMemPoolAttr which) {
  uint64_t value = 0;
  check(cudaMemPoolGetAttribute(pool_of(index), which, &value), "memory pool");
  return static_cast<int64_t>(value);
}

void trim(int index) {
  check(cudaStreamSynchronize(stream_of(index)), "synchronize");
  check(cudaMemPoolTrimTo(pool_of(index), 0), "memory pool");
}

}  // namespace

void copy_between(void* to, int to_index, const void* from, int from_index, size_t bytes,
                  cudaStream_t stream) {
  const bool near = to_index == from_index || pool_opened_to(from_index, to_index);
  check(near ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream)
             : cudaMemcpyPeerAsync(to, to_index, from, from_index, bytes, stream),
        "copy between devices");
}

void* take_from_pool(size_t bytes, int index) {
  const CurrentDevice current(index);
  const Relaxed relaxed;
  void* block = nullptr;
  if (cudaMallocAsync(&block, bytes, stream_of(index)) == cudaSuccess) return block;
  cudaGetLastError();
  trim(index);  // free blocks of other sizes may hold the memory
  const cudaError_t error = cudaMallocAsync(&block, bytes, stream_of(index));
  if (error == cudaSuccess) return block;
  cudaGetLastError();
  throw Error(
      fmt::format("[storage] {} bytes on cuda:{}: {}", bytes, index, cudaGetErrorString(error)));
}

// At process exit the runtime, with all memory, may end before the last tensor is destroyed.
void give_to_pool(void* block, int index) noexcept {
  try {
    const CurrentDevice current(index);
    const Relaxed relaxed;
    cudaFreeAsync(block, stream_of(index));
    cudaGetLastError();
  } catch (const std::exception&) {
    // The runtime has ended and freed it.
  }
}

}  // namespace cuda

namespace gpu {

std::shared_ptr<void> allocate(int64_t bytes, int index) {
  const auto size = static_cast<size_t>(bytes);
  cuda::Capture* const capture = cuda::current_capture;
  if (capture != nullptr && capture->index == index) return capture->memory.take(size);
  return {cuda::take_from_pool(size, index),
          [index](void* block) { cuda::give_to_pool(block, index); }};
}

void copy(void* to, Device to_device, const void* from, Device from_device, int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  if (to_device.type == DeviceType::cpu) return cuda::to_host(to, from, from_device.index, size);
  if (from_device.type == DeviceType::cpu) return cuda::to_gpu(to, to_device.index, from, size);
  cuda::between(to, to_device.index, from, from_device.index, size);
}

void copy_rows(const Rows& rows, int index) {
  const cuda::OnDevice on(index);
  const auto size = [](int64_t bytes) { return static_cast<size_t>(bytes); };
  cuda::check(
      cudaMemcpy2DAsync(rows.to, size(rows.to_pitch), rows.from, size(rows.from_pitch),
                        size(rows.bytes), size(rows.rows), cudaMemcpyDeviceToDevice, on.stream()),
      "copy of rows");
}

void zero(void* to, int index, int64_t bytes) {
  const cuda::OnDevice on(index);
  cuda::check(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), on.stream()), "fill with zeros");
}

void synchronize(int index) {
  cuda::refuse_in_capture("waiting");
  const cuda::OnDevice on(index);
  cuda::check(cudaStreamSynchronize(on.stream()), "synchronize");
}

// Synchronizes first, because frees that are still enqueued would count as used.
MemoryUse memory_use(int index) {
  synchronize(index);
  const int64_t used = cuda::attribute(index, cudaMemPoolAttrUsedMemCurrent);
  return {.in_use = used,
          .cached = cuda::attribute(index, cudaMemPoolAttrReservedMemCurrent) - used,
          .peak = cuda::attribute(index, cudaMemPoolAttrUsedMemHigh)};
}

void reset_peak_memory(int index) {
  uint64_t anew = 0;  // the only valid value
  cuda::check(cudaMemPoolSetAttribute(cuda::pool_of(index), cudaMemPoolAttrUsedMemHigh, &anew),
              "memory pool");
}

void release_cached_memory(int index) { cuda::trim(index); }

}  // namespace gpu
}  // namespace howmany
