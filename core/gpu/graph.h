// SPDX-License-Identifier: Apache-2.0
// CUDA graphs. Errors are as in gpu.h.
#pragma once

#include <functional>
#include <memory>

namespace howmany::gpu {

// A CUDA graph captured from the work that `enqueue` enqueues on this thread. Nothing runs during
// capture.
//
// Why. Mode option graph=on measures what a user gains by CUDA graphs, for example with
//   torch.compile(mode="reduce-overhead"), if launches limit a step.
// Memory. Each launch uses the same addresses. The graph keeps the tensors that `enqueue` touches
//   alive and owns the memory that `enqueue` allocates. Each launch overwrites the latter.
// Failure. Work that cannot be captured throws Error within `enqueue`, and so out of the
//   constructor: synchronization, copies from or to the host, work of other devices. The device is
//   then as before.
// Warm-up. Run `enqueue` once or twice before capture, so that values that are created once and
//   cached (also by libraries) exist.
class Graph {
 public:
  Graph(int index, const std::function<void()>& enqueue);
  void launch();  // enqueues the graph after the work that was enqueued before

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};
// Returns true if this thread is capturing a graph. Values that depend on changing tensors must not
// be cached during a capture, nor read from a cache: each launch must compute them.
bool capturing();
// Keeps `owner` alive as long as the graph that this thread captures, unless `data` is memory of
// that graph.
void keep_for_graph(std::shared_ptr<const void> owner, const void* data);
// For work that no graph can hold, such as collectives. Without a capture, calls `call` now. During
// one, each launch calls it, between the work captured before it and the work captured after it.
void outside_graph(std::function<void()> call);

}  // namespace howmany::gpu
