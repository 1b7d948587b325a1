// CommEngine: the interface of a communication library to Comm. One engine is one file in
// parallel/comms and one line in comm_list.h.
//
// Calls. Comm checks the arguments, skips size 1 and empty tensors, and makes one call at a time.
// Completion. A call on host memory is complete when it returns. A call on GPU memory is submitted
//   when it returns, and in flight until poll() reports it complete.
// Thread safety. Only abort() may be called concurrently with another call.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm.h"
#include "parallel/launch.h"

namespace howmany {

class HostStaging;  // staging.h

// Thrown by engines. Comm adds the operation, the rank and the elapsed time.
class EngineError : public Error {
 public:
  EngineError(int peer, const std::string& why) : Error(why), peers_(peer < 0 ? 0 : 1, peer) {}
  EngineError(std::vector<int> peers, const std::string& why)
      : Error(why), peers_(std::move(peers)) {}
  int peer() const { return peers_.empty() ? -1 : peers_.front(); }  // -1 if unknown
  const std::vector<int>& peers() const { return peers_; }           // ranks that caused it

 private:
  std::vector<int> peers_;
};

// World ranks and hosts of a group's ranks, for messages.
struct Roster {
  int world = 1;
  std::vector<int> ranks;
  std::vector<std::string> hosts = {};  // empty if unknown

  std::string host_of(int rank) const {
    return hosts.empty() ? "" : hosts[static_cast<size_t>(rank)];
  }
  Roster of(const std::vector<int>& members) const;
};

class CommEngine;

// The contents of a CommError. Crosses threads instead of the exception. Ranks are world ranks.
struct CallFailure {
  CallFailure(const CommEngine& engine, std::string_view what, std::vector<int> peers,
              double elapsed_seconds, std::string_view reason);
  CommError error() const { return {operation, rank, size, backend, peer, host, elapsed, why}; }
  [[noreturn]] void raise() const { throw error(); }

  std::string operation, backend;
  int rank = 0, size = 1, peer = -1;
  std::string host;  // of the peer
  double elapsed = 0;
  std::string why;
};

class CommEngine {
 public:
  CommEngine(int rank, int size);
  virtual ~CommEngine();  // never communicates
  CommEngine(const CommEngine&) = delete;
  CommEngine& operator=(const CommEngine&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  virtual std::string_view name() const = 0;
  virtual std::map<std::string, std::string> details() const { return {}; }
  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  void set_roster(Roster roster) { roster_ = std::move(roster); }
  const Roster& roster() const { return roster_; }
  // Describes the next call.
  void set_call(const char* operation, std::chrono::steady_clock::time_point start,
                std::chrono::milliseconds timeout) {
    operation_ = operation;
    start_ = start;
    timeout_ = timeout;
  }
  // For an engine that cannot throw out of the running call.
  CommError error_of_call(const EngineError& e) const;

  // The device of the tensors of all calls. Comm stages tensors that are elsewhere.
  virtual Device native_device() const { return {}; }
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
  // A barrier that sleeps, for ranks that may wait for hours.
  virtual void assemble() { barrier(); }
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
  std::chrono::steady_clock::time_point start_of_call() const { return start_; }
  const std::shared_ptr<void>& start_event() const { return start_event_; }

 private:
  const int rank_, size_;
  const char* operation_ = "connect";
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds timeout_{30'000};
  Roster roster_;
  std::shared_ptr<void> start_event_;
  std::unique_ptr<HostStaging> host_staging_;
};

// Pauses between polls: yields within 1 ms of `start`, then sleeps 20 us each time, so that polls
// do not disturb threads that submit work.
void pause_between_polls(std::chrono::steady_clock::time_point start);

constexpr int kReduceOps = 3;
// True if `part` is this rank's part of `whole`, so that the call is in place.
bool is_own_part(const Tensor& part, const Tensor& whole, int rank);

namespace comms {

// Returns the engines of `world` ranks that are threads of this process.
std::vector<std::unique_ptr<CommEngine>> local_group(int world);

}  // namespace comms
}  // namespace howmany
