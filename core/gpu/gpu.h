// GPU memory, streams, events and graphs. The rest of core uses CUDA only through this header.
// A build without CUDA links gpu/none.cpp instead: count() is 0 and unavailable() says why.
//
// Ordering. Each GPU has one stream. It runs all work but that of a Stream object, in the order in
//   which the threads of this process enqueue it. If thread A enqueues work and then synchronizes
//   with thread B (lock, join), B's later work runs after it.
// Failure. CUDA errors throw Error.
// Thread safety. Thread-safe.
//
//   if (gpu::count() > 0) Tensor x = Tensor::zeros({2}, Dtype::f32, Device::parse("cuda:0"));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/storage.h"

namespace howmany::gpu {

int count();                         // usable GPUs; 0 without a driver. Never throws.
std::string unavailable();           // why count() is 0; empty if it is not
std::string pci_address(int index);  // "0000:1B:00.0"; empty if unknown
std::string name(int index);         // "NVIDIA H100 80GB HBM3"
std::string uuid(int index);         // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", as in NVML

// Memory from the device's pool, for work that is enqueued after the call. release() does not
// block: the block is reused only after the work that was enqueued before it. allocate() throws
// Error if there is no memory.
void* allocate(int64_t bytes, int index);
void release(void* block, int index) noexcept;

// Copies between any two devices. On return `from` may be overwritten if it is host memory, and
// `to` is complete if it is. Between GPUs the copy is only enqueued.
void copy(void* to, Device to_device, const void* from, Device from_device, int64_t bytes);
void zero(void* to, int index, int64_t bytes);

void synchronize(int index);  // blocks the host until all work that was enqueued is complete
void synchronize_used();      // the same for every GPU that this process has used
// Records an event (cudaEvent_t) on the device's stream. Other streams can wait for it: they then
// run after the work that was enqueued before, and do not wait for later work.
std::shared_ptr<void> mark(int index);
MemoryUse memory_use(int index);
void reset_peak_memory(int index);
void release_cached_memory(int index);

// Converts each element as static_cast does. Both buffers are on the device.
void convert(void* to, Dtype to_dtype, const void* from, Dtype from_dtype, int64_t count,
             int index);

// An event with a time. It occurs once the work that was enqueued before its construction
// completes.
class Moment {
 public:
  explicit Moment(int index);
  void wait() const;  // blocks the host until the event occurs
  bool over() const;  // true once it has occurred
  // By the device's clock. Blocks the host until both have occurred.
  double seconds_since(const Moment& earlier) const;

 private:
  std::shared_ptr<void> event_;
};

// An asynchronous copy to the host. The constructor enqueues it.
class Fetch {
 public:
  Fetch(const void* from, int64_t bytes, int index);
  // Blocks the host until the copy completes. Returns the bytes, which live as long as this object.
  const void* wait() const;

 private:
  struct Block;
  std::shared_ptr<const Block> block_;
};

// A CUDA graph captured from the work that `ask` enqueues on this thread. Nothing runs during
// capture.
//
// Memory. Each launch uses the same addresses. The graph keeps the tensors that `ask` touches alive
//   and owns the memory that `ask` allocates. Each launch overwrites the latter.
// Failure. Work that cannot be captured throws Error within `ask`, and so out of the constructor:
//   synchronization, copies from or to the host, work of other devices. The device is then as
//   before.
// Warm-up. Run `ask` once or twice before capture, so that values that are created once and cached
//   (also by libraries) exist.
class Graph {
 public:
  Graph(int index, const std::function<void()>& ask);
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

void wait_for(int index, const std::shared_ptr<void>& mark);  // the device's stream waits
void finish(const std::shared_ptr<void>& mark);  // blocks the host until the event occurs

// Pinned (page-locked) host memory: a Stream can copy from and to it without blocking the host.
void* allocate_pinned(int64_t bytes, int index);
void release_pinned(void* block, int index) noexcept;

// A stream whose work runs concurrently with the device's stream, in the order enqueued. Before it
// uses memory from allocate(), the work that the device enqueued by then must complete: record a
// mark() and finish() it. Different Stream objects may be used by different threads.
class Stream {
 public:
  explicit Stream(int index);
  ~Stream();  // blocks until all its work is complete
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void copy_in(void* to, const void* from, int64_t bytes);   // host memory `from` outlives the copy
  void copy_out(void* to, const void* from, int64_t bytes);  // `to` is pinned host memory
  void wait(const std::shared_ptr<void>& mark);              // later work waits for the event
  std::shared_ptr<void> mark() const;                        // records an event on this stream
  void finish() const;       // blocks until all work is complete; the thread sleeps
  void synchronize() const;  // the same, but the thread spins, which avoids the wake-up latency

  int index() const { return index_; }
  void* raw() const { return raw_; }  // the cudaStream_t

 private:
  int index_;
  void* raw_ = nullptr;
};

}  // namespace howmany::gpu
