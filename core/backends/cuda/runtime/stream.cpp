// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/backends/cuda/runtime/runtime.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/gpu/stream.h"

namespace howmany::gpu {
namespace {

cudaStream_t as_stream(void* raw) { return static_cast<cudaStream_t>(raw); }
cudaEvent_t as_event(const std::shared_ptr<void>& event) {
  return static_cast<cudaEvent_t>(event.get());
}

}  // namespace

void wait_for(int index, const std::shared_ptr<void>& event) {
  const cuda::OnDevice on(index);
  cuda::check(cudaStreamWaitEvent(on.stream(), as_event(event), 0), "event");
}

void finish(const std::shared_ptr<void>& event) {
  cuda::check(cudaEventSynchronize(as_event(event)), "event");
}

std::shared_ptr<void> allocate_pinned(int64_t bytes, int index) {
  const cuda::CurrentDevice on(index);
  void* block = nullptr;
  cuda::check(cudaMallocHost(&block, static_cast<size_t>(bytes)), "pinned memory");
  return {block, [index](void* pinned) {
            try {
              const cuda::CurrentDevice current(index);
              cudaFreeHost(pinned);
              cudaGetLastError();
            } catch (const std::exception&) {
              // The runtime has ended and freed it.
            }
          }};
}

Stream::Stream(int index) : index_(index) {
  const cuda::CurrentDevice on(index);
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  raw_ = stream;
}

Stream::~Stream() {
  try {
    const cuda::CurrentDevice on(index_);
    cudaStreamSynchronize(as_stream(raw_));
    cudaStreamDestroy(as_stream(raw_));
    cudaGetLastError();
  } catch (const std::exception&) {
    // The runtime has ended and freed it.
  }
}

void Stream::copy_in(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  const cuda::CurrentDevice on(index_);
  cuda::check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice,
                              as_stream(raw_)),
              "copy to device");
}

void Stream::copy_out(void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  const cuda::CurrentDevice on(index_);
  cuda::check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost,
                              as_stream(raw_)),
              "copy to host");
}

void Stream::wait(const std::shared_ptr<void>& event) {
  const cuda::CurrentDevice on(index_);
  cuda::check(cudaStreamWaitEvent(as_stream(raw_), as_event(event), 0), "event");
}

std::shared_ptr<void> Stream::record_event() const {
  const cuda::CurrentDevice on(index_);
  return cuda::recorded(as_stream(raw_), cudaEventDisableTiming | cudaEventBlockingSync);
}

void Stream::finish() const { gpu::finish(record_event()); }

void Stream::synchronize() const {
  const cuda::CurrentDevice on(index_);
  cuda::check(cudaStreamSynchronize(as_stream(raw_)), "synchronize");
}

}  // namespace howmany::gpu
