// SPDX-License-Identifier: Apache-2.0
// The interface of a communication library to Comm: a file in engines/ and a line in comm_list.h.
//
// Calls. Comm checks the arguments, skips size 1 and empty tensors, and makes one call at a time.
// Completion. A call on host memory is complete when it returns. A call on GPU memory is submitted
//   when it returns, and in flight until poll() reports it complete.
// Thread safety. Only abort() may be called concurrently with another call.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "parallel/comm/call_failure.h"
#include "parallel/comm/comm.h"
#include "parallel/comm/place.h"
#include "parallel/comm/virtual_clock.h"

namespace howmany {

class HostStaging;  // staging.h

class CommEngine {
 public:
  CommEngine(int rank, int size);
  virtual ~CommEngine();  // never communicates

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual std::string_view name() const = 0;
  virtual std::map<std::string, std::string> details() const { return {}; }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  void set_roster(Roster roster) { roster_ = std::move(roster); }
  const Roster& roster() const { return roster_; }
  void set_call(const char* operation, Clock::time_point start, std::chrono::milliseconds timeout) {
    operation_ = operation;
    start_ = start;
    timeout_ = timeout;
  }
  // A call that was queued behind others.
  struct Queued {
    std::atomic<bool> waited = false;  // the caller began to wait for it
    // For a simulated rank: its clock; the time on it when the call was made, and when the call is
    // complete; and the seconds that the call takes from the rank's computing.
    std::shared_ptr<VirtualClock> clock = {};
    double at = 0;
    mutable std::atomic<double> end = 0, core = 0;
  };
  // Describes the running call; null if it runs as it is made.
  void set_queued(std::shared_ptr<const Queued> queued) { queued_ = std::move(queued); }
  // For an engine that cannot throw out of the running call.
  CommError error_of_call(const EngineError& e) const;

  // The clock of a simulated rank (simulation.h); else null.
  virtual std::shared_ptr<VirtualClock> clock() const { return nullptr; }

  // The device of the tensors of all calls.
  virtual Device native_device() const { return {}; }
  // Returns true if calls with tensors of meta devices are made too. They move nothing.
  virtual bool takes_meta() const { return false; }
  // Returns memory that a reduce-scatter of `send` takes until it is complete, if that is to be
  // estimated and `send` is on a meta device.
  virtual std::shared_ptr<void> scratch_on_meta(const Tensor&) { return nullptr; }
  // On a GPU: the next call starts after this event. Work submitted to the GPU after the event runs
  // concurrently with the call.
  void set_start_event(std::shared_ptr<void> event) { start_event_ = std::move(event); }

  virtual void all_reduce(Tensor& t, ReduceOp op) = 0;
  virtual void broadcast(Tensor& t, int root) = 0;
  virtual void all_gather(const Tensor& send, Tensor& receive) = 0;
  virtual void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) = 0;
  virtual void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) = 0;
  virtual void gather(const Tensor& send, Tensor& receive, int root) = 0;
  virtual void scatter(const Tensor& send, Tensor& receive, int root) = 0;
  virtual void all_to_all(const Tensor& send, Tensor& receive) = 0;
  virtual void send(const Tensor& t, int peer, int tag) = 0;
  virtual void receive(Tensor& t, int peer, int tag) = 0;
  virtual void barrier() = 0;
  virtual void assemble() { barrier(); }  // sleeps, for ranks that may wait for hours
  // Returns the engine of a sub-group. `members` are ranks of this engine in their new order, and
  // this rank is members[index]. Only members call it. `id` is equal for them and used once.
  virtual std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                            const std::string& id) = 0;
  // Ends running and later calls with EngineError, here and on the peers, and makes poll() throw if
  // a call is in flight. Does not block.
  virtual void abort(std::string_view why) noexcept = 0;

  // Returns the number of calls submitted to the GPU so far.
  virtual int64_t submitted() const { return 0; }
  // Returns the event after the last of them, or null if none is in flight. The engine keeps their
  // tensors until they complete.
  virtual std::shared_ptr<void> last_event() const { return nullptr; }
  // Returns the number of submitted calls that are complete. Does not block. Throws EngineError if
  // a call in flight failed: then none is in flight, and their buffers are undefined.
  virtual int64_t poll() { return 0; }
  void finish();  // polls until no call is in flight
  // Staging buffers for that GPU, for an engine whose native device is the host.
  HostStaging& host_staging(int gpu);

 protected:
  std::chrono::milliseconds timeout() const { return timeout_; }
  Clock::time_point start_of_call() const { return start_; }
  const std::shared_ptr<void>& start_event() const { return start_event_; }
  const std::shared_ptr<const Queued>& queued() const { return queued_; }

 private:
  const int rank_, size_;
  const char* operation_ = "connect";
  Clock::time_point start_ = Clock::now();
  std::shared_ptr<const Queued> queued_;
  std::chrono::milliseconds timeout_{30'000};
  Roster roster_;
  std::shared_ptr<void> start_event_;
  std::unique_ptr<HostStaging> host_staging_;
};

// Pauses between polls: yields within 1 ms of `start`, then sleeps 20 us each time, so that polls
// do not disturb threads that submit work.
void pause_between_polls(Clock::time_point start);

// True if `part` is this rank's part of `whole`, so that the call is in place.
bool is_own_part(const Tensor& part, const Tensor& whole, int rank);

// Returns the engines of `world` ranks that are threads of this process. Their waits spin first if
// `may_spin` and every rank can have a core.
namespace comms {
std::vector<std::unique_ptr<CommEngine>> local_group(int world, bool may_spin = true);
}
}  // namespace howmany
