// SPDX-License-Identifier: Apache-2.0
// Chooses an engine for a graph: the fastest, as measured, of the first few that cuDNN's heuristics
// propose. Private to core/backends/cuda.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/backends/cuda/dnn/graph.h"
#include "core/backends/cuda/runtime/runtime.h"

namespace howmany::cuda::dnn {

// Returns whether an engine with these notes may be used. Tensor cores round f32 inputs to tf32, so
// an engine must use them if and only if `tensor_cores` is true; then problems of all sizes are
// rounded alike. Rejects engines that sum in a narrower format, use a transform (FFT, Winograd) or
// are nondeterministic.
bool is_wanted(std::span<const cudnnBackendNumericalNote_t> notes, bool tensor_cores);
bool is_wanted(const Descriptor& configuration, bool tensor_cores);

// Returns the engines that cuDNN's heuristics propose, best first. If `gpu` is not null, uses those
// device properties instead of the current GPU's.
std::vector<Descriptor> advised(const Graph& graph, cudnnBackendHeurMode_t mode,
                                const Descriptor* gpu);

struct Engine {
  Descriptor configuration, plan;
  int64_t workspace = 0;  // bytes
};
// Returns at most `most` engines that are ready to run. At most one of them is compiled at run
// time, which takes seconds.
std::vector<Engine> engines_for(const Graph& graph, bool tensor_cores, size_t most,
                                const Descriptor* gpu = nullptr);

struct Problem {
  std::vector<int64_t> key;  // everything that its plan depends on, except for the GPU
  bool tensor_cores;
  std::function<Graph()> graph;       // not finished
  std::function<std::string()> what;  // for gpu::fallbacks()
};
// The pointers of the tensors in memory, in their order. Values are passed by host pointers.
using Places = std::vector<void*>;
// Runs the problem. Makes its plan once per GPU, and calls `places` only if there may be an engine.
// Returns false, with undefined outputs, if there is no engine. Also returns false during a capture
// (capture.h) if the problem is new, because a capture cannot measure.
bool compute(const Problem& problem, const std::function<Places()>& places, Device device,
             const OnDevice& on);

// Adds to gpu::fallbacks(), once for each `what`.
void add_fallback(const std::string& what, const std::string& why);

// Gives every plan the engine that the table of choices has for it (runtime/tuning.h).
void use_tuning();

bool serves(int device);  // true if cuDNN has a handle for the device

}  // namespace howmany::cuda::dnn
