// SPDX-License-Identifier: Apache-2.0
#include "core/backends/cuda/graph/capture.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "core/backends/cuda/runtime/runtime.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"
#include "core/gpu/graph.h"

namespace howmany {
namespace cuda {
namespace {

std::atomic<uint64_t> epochs = 1;                        // number of epochs so far
std::array<std::atomic<uint64_t>, 64> of_launches = {};  // current epoch by device

cudaError_t begin(Capture& now) {
  const cudaError_t error = cudaStreamBeginCapture(now.stream, cudaStreamCaptureModeThreadLocal);
  if (error == cudaSuccess) current_capture = &now;
  return error;
}

cudaError_t stop(Capture& now, cudaGraph_t* graph) {
  current_capture = nullptr;
  return cudaStreamEndCapture(now.stream, graph);
}

void end(Capture& now, std::function<void()> then) {
  cudaGraph_t graph = nullptr;
  check(stop(now, &graph), "capture");
  cudaGraphExec_t made = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  check(error, "graph");
  now.pieces.push_back({decltype(Piece::graph)(made), std::move(then)});
}

class GraphCapture {
 public:
  GraphCapture(int index, GraphMemory& memory) : on_(index), now_{index, memory, ++epochs} {
    check(cudaStreamCreateWithFlags(&now_.stream, cudaStreamNonBlocking), "stream");
    const cudaError_t error = begin(now_);
    if (error != cudaSuccess) cudaStreamDestroy(now_.stream);
    check(error, "capture");
  }
  ~GraphCapture() {
    if (cudaGraph_t rest = nullptr; current_capture == &now_) {
      stop(now_, &rest);
      if (rest != nullptr) cudaGraphDestroy(rest);
      cudaGetLastError();  // clears the error, which was reported
    }
    cudaStreamDestroy(now_.stream);
  }
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  Capture& now() { return now_; }

 private:
  const OnDevice on_;
  Capture now_;
};

}  // namespace

uint64_t epoch(int device) {
  return current_capture != nullptr ? current_capture->epoch : epoch_outside(device);
}
uint64_t epoch_outside(int device) {
  return std::max<uint64_t>(1, of_launches.at(static_cast<size_t>(device)));  // 0: no launch yet
}

void refuse_in_capture(const char* what) {
  if (current_capture != nullptr) throw Error(fmt::format("[gpu] a graph cannot keep {}", what));
}

}  // namespace cuda

namespace gpu {

// Its memory is freed in stream order, after the last launch.
struct Graph::Kept {
  const int index;
  const std::shared_ptr<cuda::GraphMemory> memory = std::make_shared<cuda::GraphMemory>(index);
  std::set<std::shared_ptr<const void>> touched;
  std::vector<cuda::Piece> pieces;
  std::map<const void*, std::function<void()>> before;
};

Graph::Graph(int index, const std::function<void()>& enqueue) {
  cuda::refuse_in_capture("another graph");
  kept_ = std::make_shared<Kept>(index);
  cuda::GraphCapture capture(index, *kept_->memory);
  enqueue();
  cuda::end(capture.now(), [] {});
  kept_->pieces = std::move(capture.now().pieces);
  kept_->touched = std::move(capture.now().touched);
  kept_->before = std::move(capture.now().before);
}

void Graph::launch() {
  cuda::refuse_in_capture("another graph");
  for (const auto& [owner, call] : kept_->before) call();
  for (const cuda::Piece& piece : kept_->pieces) {
    {
      const cuda::OnDevice on(kept_->index);
      cuda::check(cudaGraphLaunch(piece.graph.get(), on.stream()), "graph");
      cuda::of_launches.at(static_cast<size_t>(kept_->index)) = ++cuda::epochs;
    }
    piece.then();
  }
}

void outside_graph(std::function<void()> call) {
  if (cuda::current_capture == nullptr) return call();
  cuda::Capture& now = *cuda::current_capture;
  cuda::end(now, std::move(call));
  cuda::check(cuda::begin(now), "capture");
}

bool capturing() { return cuda::current_capture != nullptr; }

void keep_for_graph(std::shared_ptr<const void> owner, const void* data) {
  cuda::Capture* const now = cuda::current_capture;
  if (now != nullptr && !now->memory.holds(data)) now->touched.insert(std::move(owner));
}

}  // namespace gpu
}  // namespace howmany
