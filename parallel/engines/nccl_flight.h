// SPDX-License-Identifier: Apache-2.0
// CUDA events, and the calls of an NCCL communicator that are in flight. Private to nccl.cpp.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"
#include "parallel/engines/awake_time.h"
#include "parallel/engines/nccl_library.h"

namespace howmany {

using Event = std::shared_ptr<void>;
inline cudaEvent_t event_of(const Event& event) { return static_cast<cudaEvent_t>(event.get()); }
Event record_event(cudaStream_t stream);
// Returns false if the work is not complete. Throws EngineError if it failed.
bool done(cudaError_t state);

constexpr std::chrono::milliseconds kBoardInterval(200);  // between reads of the failure board

// The timeout of the oldest call in flight.
struct Watch {
  AwakeTime time{};
  std::chrono::steady_clock::time_point next_read =
      std::chrono::steady_clock::now() + kBoardInterval;
  bool begun = false;            // this rank's GPU has reached the call
  std::optional<int> left = {};  // a peer that left, as of the last read of the failure board
};

// A submitted call.
struct CallInFlight {
  std::vector<Tensor> buffers;
  std::vector<int> peers;  // ranks that take part
  std::chrono::milliseconds timeout;
  Event begin = nullptr, end = nullptr;  // no end: NCCL has not enqueued it yet
  Watch watch = {};
};

// Keeps the buffers of these calls until the process ends, since NCCL may still write to them.
void leak_buffers(const std::deque<CallInFlight>& calls);

}  // namespace howmany
