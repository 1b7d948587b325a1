#include "core/backends/cuda/capture.h"

#include <atomic>

#include "core/backends/cuda/runtime.h"
#include "core/error.h"
#include "core/gpu.h"

namespace howmany {
namespace cuda {
namespace {

std::atomic<uint64_t> epochs = 1, epoch_outside = 1;  // how many began; which is on

class Capturing {
 public:
  Capturing(int index, GraphMemory& memory) : on_(index), now_{index, memory, ++epochs} {
    check(cudaStreamCreateWithFlags(&now_.stream, cudaStreamNonBlocking), "stream");
    const cudaError_t error = cudaStreamBeginCapture(now_.stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess) cudaStreamDestroy(now_.stream);
    check(error, "capture");
    current_capture = &now_;
  }
  ~Capturing() {
    if (cudaGraph_t rest = nullptr; current_capture == &now_) {
      stop(&rest);
      if (rest != nullptr) cudaGraphDestroy(rest);
      cudaGetLastError();  // why it failed was told
    }
    cudaStreamDestroy(now_.stream);
  }
  Capturing(const Capturing&) = delete;
  Capturing& operator=(const Capturing&) = delete;

  cudaGraphExec_t end() {
    cudaGraph_t graph = nullptr;
    check(stop(&graph), "capture");
    cudaGraphExec_t made = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&made, graph, 0);
    cudaGraphDestroy(graph);
    check(error, "graph");
    return made;
  }
  Capture& now() { return now_; }

 private:
  cudaError_t stop(cudaGraph_t* graph) {
    current_capture = nullptr;
    return cudaStreamEndCapture(now_.stream, graph);
  }

  const OnDevice on_;
  Capture now_;
};

}  // namespace

uint64_t epoch() {
  return current_capture != nullptr ? current_capture->epoch : epoch_outside.load();
}

void refuse_in_capture(const char* what) {
  if (current_capture != nullptr) throw Error(fmt::format("[gpu] a graph cannot keep {}", what));
}

}  // namespace cuda

namespace gpu {

// Its memory goes back behind the last launch, as all memory of the stream.
struct Graph::Kept {
  explicit Kept(int device) : index(device), memory(cuda::make_graph_memory(device)) {}
  ~Kept() {
    if (made != nullptr) cudaGraphExecDestroy(made);  // one in flight goes when it is done
    cuda::drop(*memory);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  const int index;
  const std::shared_ptr<cuda::GraphMemory> memory;
  std::set<std::shared_ptr<const void>> touched;
  cudaGraphExec_t made = nullptr;
};

Graph::Graph(int index, const std::function<void()>& ask) {
  cuda::refuse_in_capture("another graph");
  kept_ = std::make_shared<Kept>(index);
  cuda::Capturing capturing(index, *kept_->memory);
  ask();
  kept_->made = capturing.end();
  kept_->touched = std::move(capturing.now().touched);
}

void Graph::launch() {
  cuda::refuse_in_capture("another graph");
  const cuda::OnDevice on(kept_->index);
  cuda::check(cudaGraphLaunch(kept_->made, on.stream()), "graph");
  cuda::epoch_outside = ++cuda::epochs;
}

bool capturing() { return cuda::current_capture != nullptr; }

void keep_for_graph(std::shared_ptr<const void> owner, const void* data) {
  cuda::Capture* const now = cuda::current_capture;
  if (now != nullptr && !now->memory.holds(data)) now->touched.insert(std::move(owner));
}

}  // namespace gpu
}  // namespace howmany
