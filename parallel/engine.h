// What carries a Comm's bytes. Comm has checked the arguments, skips size 1 and empty tensors, and
// makes one call at a time; abort() alone may come from another thread meanwhile. A call is over
// when it returns; one on the memory of a GPU may only have been asked of it by then, and is in
// flight until look() says otherwise. An engine is one file in parallel/comms plus its line in
// comm.h; nobody else includes this.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm.h"
#include "parallel/launch.h"

namespace howmany {

class Shuttle;

// Thrown by engines; Comm adds the operation, the rank and the time.
class EngineError : public Error {
 public:
  EngineError(int peer, const std::string& why) : Error(why), peers_(peer < 0 ? 0 : 1, peer) {}
  EngineError(std::vector<int> peers, const std::string& why)
      : Error(why), peers_(std::move(peers)) {}
  int peer() const { return peers_.empty() ? -1 : peers_.front(); }  // -1: not known
  const std::vector<int>& peers() const { return peers_; }           // whoever is to blame

 private:
  std::vector<int> peers_;
};

// The ranks of a group as messages name them: by their numbers in the world that was split into
// such groups, and by their hosts where those are known.
struct Roster {
  int world = 1;
  std::vector<int> ranks;
  std::vector<std::string> hosts = {};

  std::string host_of(int rank) const {
    return hosts.empty() ? "" : hosts[static_cast<size_t>(rank)];
  }
  Roster of(const std::vector<int>& members) const;
};

class CommEngine;

// What a CommError is made of. It crosses threads instead of the exception, which is made afresh by
// whoever throws. Ranks are those of the world.
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
  const Roster& roster() const { return roster_; }  // a world on unknown hosts, unless set
  // The call that comes next, for an engine that cannot throw out of it.
  void set_call(const char* operation, std::chrono::steady_clock::time_point start) {
    operation_ = operation;
    start_ = start;
  }
  CommError error_of_call(const EngineError& e) const;

  // Where the tensors of calls are: Comm copies those that are elsewhere, there and back.
  virtual Device home() const { return {}; }
  // Of home() where that is a GPU: what the next call begins behind (see gpu::mark). What the
  // device is asked for later goes on beside the call.
  void set_mark(std::shared_ptr<void> mark) { mark_ = std::move(mark); }

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
  // As barrier(), where ranks may wait for hours: without using their cores.
  virtual void assemble() { barrier(); }
  // The engine of the sub-group `members` (ranks here, in the new order), where this rank is
  // members[index]; called by the members only. `id` is the same for them and never used again.
  virtual std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                            const std::string& id) = 0;
  // Every call here and on the peers, running or later, ends with an EngineError, as does look()
  // while something is in flight. Does not block.
  virtual void abort(std::string_view why) noexcept = 0;

  // How many calls were asked of a GPU, and the mark that stands behind them there; null when
  // nothing is in flight. Their tensors are kept until they are over.
  virtual int64_t asked() const { return 0; }
  virtual std::shared_ptr<void> end() const { return nullptr; }
  // How many of these are over. Throws, as a call would, what went wrong with those in flight: then
  // none is any more, and what they worked on holds nothing. Does not block, unless it throws.
  virtual int64_t look() { return 0; }
  void finish();  // looks until nothing is in flight
  // To and from that GPU, of an engine that is at home on the host.
  Shuttle& shuttle(int gpu);

 protected:
  std::chrono::milliseconds timeout() const { return timeout_; }
  std::chrono::steady_clock::time_point start_of_call() const { return start_; }
  const std::shared_ptr<void>& mark() const { return mark_; }

 private:
  const int rank_, size_;
  const char* operation_ = "connect";
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::milliseconds timeout_{30'000};
  Roster roster_;
  std::shared_ptr<void> mark_;
  std::unique_ptr<Shuttle> shuttle_;  // made when it is first asked for
};

// A tensor of a call, as it was when the call was made: what its GPU is asked for later is no part
// of it.
struct Guest {
  Guest(const CommEngine& engine, Tensor tensor);
  Tensor t;
  std::shared_ptr<void> mark;  // where it is on a GPU, and the engine at home on the host
};

// The tensor itself where it is at the engine's home (whichever cores of it, on the CPU), else a
// copy or room for it there, which the next call then waits for. These wait for what is in flight.
bool is_home(const CommEngine& engine, const Tensor& t);
Tensor at_home(CommEngine& engine, const Guest& guest);
Tensor room_for(CommEngine& engine, const Guest& guest);
// From there back to where it came from.
void bring_back(CommEngine& engine, const Tensor& there, Guest& guest);

// Between looks at what began then: a short call is watched closely; in a long one the looks would
// disturb who asks the GPU for more.
void rest(std::chrono::steady_clock::time_point start);

constexpr int kReduceOps = 3;
// Whether `part` is where this rank's part of `whole` is: the call is in place.
bool is_own_part(const Tensor& part, const Tensor& whole, int rank);

namespace comms {

// The ranks of one process, all at once.
std::vector<std::unique_ptr<CommEngine>> local_group(int world);

}  // namespace comms
}  // namespace howmany
