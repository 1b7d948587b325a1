// SPDX-License-Identifier: Apache-2.0
#include "core/gpu/event.h"
#include "core/backends/cuda/graph/capture.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/backends/cuda/runtime/staging.h"
#include "core/gpu/stream.h"

namespace howmany::gpu {
namespace {

cudaEvent_t event_of(const std::shared_ptr<void>& owned) {
  return static_cast<cudaEvent_t>(owned.get());
}

std::shared_ptr<void> recorded(int index, unsigned flags) {
  cuda::refuse_in_capture("an event");
  return cuda::recorded(cuda::OnDevice(index).stream(), flags);
}

}  // namespace

// A host thread that waits for the event sleeps, so that other threads can use its core.
std::shared_ptr<void> record_event(int index) {
  return recorded(index, cudaEventDisableTiming | cudaEventBlockingSync);
}

TimedEvent::TimedEvent(int index) : event_(recorded(index, cudaEventDefault)) {}

void TimedEvent::wait() const { cuda::check(cudaEventSynchronize(event_of(event_)), "event"); }

bool TimedEvent::occurred() const {
  const cudaError_t state = cudaEventQuery(event_of(event_));
  if (state == cudaErrorNotReady) return cudaGetLastError(), false;
  cuda::check(state, "event");
  return true;
}

double TimedEvent::seconds_since(const TimedEvent& earlier) const {
  earlier.wait();
  wait();
  float milliseconds = 0;
  cuda::check(cudaEventElapsedTime(&milliseconds, event_of(earlier.event_), event_of(event_)),
              "time between events");
  return static_cast<double>(milliseconds) * 1e-3;
}

// A pinned block. It is given back after all work that is enqueued by then, which includes its
// copy.
struct Fetch::Block {
  Block(const void* from, int64_t bytes, int index)
      : at(index),
        staged(
            (cuda::CurrentDevice(index), cuda::staging(index).take(static_cast<size_t>(bytes)))) {
    const cuda::OnDevice on(at);
    cuda::check(cudaMemcpyAsync(staged.host, from, static_cast<size_t>(bytes),
                                cudaMemcpyDeviceToHost, on.stream()),
                "copy to host");
    cuda::check(cudaEventRecord(staged.done, on.stream()), "event");
  }
  ~Block() {
    try {
      cuda::staging(at).give(staged, cuda::OnDevice(at).stream());
    } catch (const std::exception&) {
      // The runtime has ended and freed it.
    }
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  const int at;
  const cuda::Staging::Block staged;
};

Fetch::Fetch(const void* from, int64_t bytes, int index)
    : block_((cuda::refuse_in_capture("a copy to the host"),
              std::make_shared<const Block>(from, bytes, index))) {}

const void* Fetch::wait() const {
  cuda::check(cudaEventSynchronize(block_->staged.done), "copy to host");
  return block_->staged.host;
}

}  // namespace howmany::gpu
