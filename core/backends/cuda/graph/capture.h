// What this thread captures into a graph, see gpu::Graph: a stream of its own, so that what other
// threads ask of the device meanwhile is done and no part of it. Private to core/backends/cuda.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/backends/cuda/graph/memory.h"

namespace howmany::cuda {

struct DestroyGraph {
  void operator()(cudaGraphExec_t made) const { cudaGraphExecDestroy(made); }  // when it is done
};
// A launch asks for the graph and then calls.
struct Piece {
  std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph> graph;
  std::function<void()> then;
};

struct Capture {
  int index;
  GraphMemory& memory;
  uint64_t epoch;
  cudaStream_t stream = nullptr;
  std::set<std::shared_ptr<const void>> touched = {};  // of the pool; the graph keeps it
  std::vector<Piece> pieces = {};
  // What comes before each launch, once for each.
  std::map<const void*, std::function<void()>> before = {};
};

inline thread_local Capture* current_capture = nullptr;

// Throws Error within a capture: "[gpu] a graph cannot keep a copy from the host".
void refuse_in_capture(const char* what);

// Graphs write past the versions of tensors: what was worked out of their values is good within one
// epoch. A capture is one of its own, and outside of them each launch begins another.
uint64_t epoch(int device);
uint64_t epoch_outside(int device);  // of captures: of the last launch there

// Calls that other threads' captures would not mind, nor does ours: they are about no stream of it.
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
