// SPDX-License-Identifier: Apache-2.0
// The capture of the calling thread, see gpu::Graph. It has a stream of its own, so that work from
// other threads runs and does not become part of the graph. Private to core/backends/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/backends/cuda/graph/memory.h"
#include "core/gpu/graph.h"

namespace howmany::cuda {

struct DestroyGraph {
  void operator()(cudaGraphExec_t made) const { cudaGraphExecDestroy(made); }  // once it completes
};
// A launch enqueues the graph and then calls `then`.
struct Piece {
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph> graph;
  std::function<void()> then;
};

struct Capture {
  int index;
  GraphMemory& memory;
  uint64_t epoch;
  cudaStream_t stream = nullptr;
  std::set<std::shared_ptr<const void>> touched = {};  // pool memory that the graph keeps alive
  std::vector<Piece> pieces = {};
  // Functions to call before each launch, one per key.
  std::map<const void*, std::function<void()>> before = {};
};

inline thread_local Capture* current_capture = nullptr;

// Throws Error during a capture: "[gpu] a graph cannot keep a copy from the host".
void refuse_in_capture(const char* what);

// Graph launches write tensors without changing their versions. So a value that is derived from a
// tensor is valid only within one epoch. Each capture is an epoch; each launch begins a new one.
uint64_t epoch(int device);
uint64_t epoch_outside(int device);  // ignores captures: the epoch of the last launch there

// Permits calls that are unsafe during a capture in general, such as allocation. They do not
// concern the captured stream.
class Relaxed {
 public:
  Relaxed() { exchange(); }
  ~Relaxed() { exchange(); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  void exchange() {
    if (current_capture != nullptr) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace howmany::cuda
