// SPDX-License-Identifier: Apache-2.0
// Copies that run concurrently with the device's stream. Errors and thread safety are as in gpu.h.
#pragma once

#include <cstdint>
#include <memory>

namespace howmany::gpu {

// Pinned (page-locked) host memory: a Stream can copy from and to it without blocking the host.
std::shared_ptr<void> allocate_pinned(int64_t bytes, int index);

// A stream whose work runs concurrently with the device's stream, in the order enqueued. Before it
// uses memory from allocate(), the work that the device enqueued by then must complete: record a
// record_event() and finish() it. Different Stream objects may be used by different threads.
class Stream {
 public:
  explicit Stream(int index);
  ~Stream();  // blocks until all its work is complete
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void copy_in(void* to, const void* from, int64_t bytes);   // host memory `from` outlives the copy
  void copy_out(void* to, const void* from, int64_t bytes);  // `to` is pinned host memory
  void wait(const std::shared_ptr<void>& event);             // later work waits for the event
  std::shared_ptr<void> record_event() const;                // records an event on this stream
  void finish() const;       // blocks until all work is complete; the thread sleeps
  void synchronize() const;  // the same, but the thread spins, which avoids the wake-up latency

  int index() const { return index_; }
  void* raw() const { return raw_; }  // the cudaStream_t

 private:
  int index_;
  void* raw_ = nullptr;
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

}  // namespace howmany::gpu
