// The memory of GPUs as the rest of core needs it, so that nothing else knows CUDA. A build without
// CUDA has gpu/none.cpp in its place: then there are no GPUs, and a word says why. All work of a
// GPU but that of a Stream goes through one stream, in the order it was asked for by the threads of
// the process; whatever a thread sees as done by another (a lock, a join) is therefore also before
// its own work there. Thread-safe.
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

int count();                         // that this build can use; 0 without a driver. Never throws.
std::string unavailable();           // why count() is 0; empty when it is not
std::string pci_address(int index);  // "0000:1B:00.0"; empty when unknown
std::string name(int index);         // "NVIDIA H100 80GB HBM3"
std::string uuid(int index);         // "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", as NVML has it

// Of the device's pool, for work asked for from now on; release() returns at once and the block is
// reused only after the work asked for before. allocate() throws Error when there is no more.
void* allocate(int64_t bytes, int index);
void release(void* block, int index) noexcept;

// Between any two devices. `from` may be reused when it returns; a copy to the host has arrived.
void copy(void* to, Device to_device, const void* from, Device from_device, int64_t bytes);
void zero(void* to, int index, int64_t bytes);

void synchronize(int index);  // all that was asked for is done
void synchronize_used();      // of every GPU that this process has used
// The cudaEvent_t of that moment, for streams of libraries that must begin behind what was asked of
// the device until now, and behind nothing later.
std::shared_ptr<void> mark(int index);
MemoryUse memory_use(int index);
void reset_peak_memory(int index);
void release_cached_memory(int index);

// Elements of one type become another's, as static_cast has it, both on the device.
void convert(void* to, Dtype to_dtype, const void* from, Dtype from_dtype, int64_t count,
             int index);

// When all is done that was asked of the device before this was made.
class Moment {
 public:
  explicit Moment(int index);
  void wait() const;                                  // the host, for nothing asked for later
  bool over() const;                                  // whether it has come
  double seconds_since(const Moment& earlier) const;  // by the device's clock; waits

 private:
  std::shared_ptr<void> event_;
};

// A copy to the host that is asked for now and waited for later.
class Fetch {
 public:
  Fetch(const void* from, int64_t bytes, int index);
  const void* wait() const;  // the bytes, which stay as long as this; any number of times

 private:
  struct Block;
  std::shared_ptr<const Block> block_;
};

// What `ask` asks of a device on this thread, kept to be asked for again as a whole. Nothing is
// done yet, and each launch works on the same memory: what `ask` touches lives as long as the
// graph, what it took from the pool is the graph's and written anew by each launch. What does not
// repeat throws within `ask`, and so out of here: waiting, copies from or to the host, work of
// other devices. The device then goes on as if nothing had been asked. What is made once and kept,
// by libraries as by us, has to be there before: run `ask` once or twice first.
class Graph {
 public:
  Graph(int index, const std::function<void()>& ask);
  void launch();  // behind what the device was asked for before

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};
// Whether this thread is within such an `ask`. What is worked out there from values that change
// must not be kept for other steps, nor taken from what they kept: each launch has to work it out.
bool capturing();
// For as long as the graph that this thread captures, if `data` is not the graph's own already.
void keep_for_graph(std::shared_ptr<const void> owner, const void* data);
// What no graph holds, like an exchange with other ranks, is called now or, within such an `ask`,
// by each launch, between what was asked before it and what was asked after.
void outside_graph(std::function<void()> call);

void wait_for(int index, const std::shared_ptr<void>& mark);  // the device does, the host does not
void finish(const std::shared_ptr<void>& mark);               // returns when the moment has come

// Page-locked memory of the host, from which a Stream copies while the host goes on.
void* allocate_pinned(int64_t bytes, int index);
void release_pinned(void* block, int index) noexcept;

// Work of a device beside what else it is asked for: done in the order that this was asked for it.
// Of memory from allocate() what was asked of the device until then has to be finish()ed first.
// Thread-safe for different streams.
class Stream {
 public:
  explicit Stream(int index);
  ~Stream();  // when all is done
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void copy_in(void* to, const void* from, int64_t bytes);  // `from`, of the host, stays until then
  void copy_out(void* to, const void* from, int64_t bytes);  // to page-locked memory
  void wait(const std::shared_ptr<void>& mark);              // before what it is asked for next
  std::shared_ptr<void> mark() const;
  void finish() const;       // asleep
  void synchronize() const;  // awake, and so without the time that waking takes

  int index() const { return index_; }
  void* raw() const { return raw_; }  // the cudaStream_t

 private:
  int index_;
  void* raw_ = nullptr;
};

}  // namespace howmany::gpu
