// Engines for a graph: those that cuDNN's heuristics advise, the best first, and of the first few
// the one that is fastest here. Private to core/backends/cuda.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/backends/cuda/dnn/api.h"
#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda::dnn {

// An engine is told of by notes. Tensor cores round what they read (f32 to tf32): those with them
// are taken where that is wanted, and then no others, so that every size of a problem is read
// alike. Never those that sum in a shorter format, go through a transform (FFT, Winograd) or give
// another result each time.
bool is_wanted(std::span<const cudnnBackendNumericalNote_t> notes, bool tensor_cores);
bool is_wanted(const Descriptor& configuration, bool tensor_cores);

// As cuDNN's heuristics advise them, the best first. `gpu`: properties to choose for instead of the
// current GPU's.
std::vector<Descriptor> advised(const Graph& graph, cudnnBackendHeurMode_t mode,
                                const Descriptor* gpu);

struct Engine {
  Descriptor configuration, plan;
  int64_t workspace = 0;  // bytes
};
// At most `most`, made ready to run, of which one at most had to be compiled: that takes seconds.
std::vector<Engine> engines_for(const Graph& graph, bool tensor_cores, size_t most,
                                const Descriptor* gpu = nullptr);

struct Problem {
  std::vector<int64_t> key;  // all that its plan depends on, but the GPU
  bool tensor_cores;
  std::function<Graph()> graph;  // not finished
};
// Where the tensors in memory are, in their order. A host's pointer for those given by value.
using Places = std::vector<void*>;
// Asks for `places` only when there may be an engine. False: there is none, and what would have
// been written may hold anything; or this is within a capture (capture.h), in which nothing can be
// measured, and the problem is new. A problem's plan is made once for each GPU.
bool compute(const Problem& problem, const std::function<Places()>& places, Device device,
             const OnDevice& on);

bool serves(int device);  // cuDNN has a handle there

}  // namespace howmany::cuda::dnn
