// SPDX-License-Identifier: Apache-2.0
// MpiGroup: an MPI communicator and the state of its ranks.
//
// Calls. They are MPI's own blocking calls, made by the calling thread, one at a time.
// Failure. A blocked MPI call cannot be left. The watchdog of MpiProcess checks the running call.
//   If it can no longer complete (the timeout has passed, or a peer failed, left or died), the
//   watchdog reports the cause and ends the process (hang_timeout.h).
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/engine.h"
#include "parallel/engines/awake_time.h"
#include "parallel/engines/mpi_process.h"

namespace howmany {

class MpiGroup : private MpiWatched {
 public:
  using Milliseconds = std::chrono::milliseconds;
  using Clock = std::chrono::steady_clock;
  struct Limit {
    Clock::time_point start = Clock::now();
    Milliseconds timeout{0};
  };

  // All ranks of MPI; collective. `name` is never used again.
  MpiGroup(MpiProcess& mpi, const std::string& name, Milliseconds timeout);
  // A sub-group of ranks of parent; this process is members[rank]. Collective over the members.
  MpiGroup(MpiGroup& parent, const std::vector<int>& members, int rank, const std::string& name,
           Limit limit);
  ~MpiGroup() override;
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  // Sets the engine that describes the running call. Required before the first call.
  void set_engine(const CommEngine& engine) { engine_ = &engine; }

  MpiProcess& process() const { return mpi_; }
  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(world_.size()); }

  // call() makes a blocking MPI call and returns its code. These throw EngineError.
  template <typename Call>
  void collective(const Limit& limit, const Call& call) {
    const int64_t begun = begun_.load(std::memory_order_relaxed) + 1;  // one thread writes it
    begun_.store(begun, std::memory_order_relaxed);
    run(-1, limit, call);
    completed_.store(begun, std::memory_order_relaxed);
  }
  template <typename Call>
  void message(int peer, const Limit& limit, const Call& call) {
    run(peer, limit, call);
  }
  // A barrier that sleeps while it waits. It can be left, so it throws on failure.
  void assemble(Milliseconds timeout);
  // After a call that returned an error: notifies the peers and throws the cause.
  [[noreturn]] void fail(int peer, const std::string& why);
  void abort(std::string_view why) noexcept;

 private:
  struct Wait {
    int peer = -1;  // -1: a collective, which needs all ranks
    Milliseconds timeout{0};
    AwakeTime time{};
  };
  static constexpr int64_t kNoCall = 0, kProcessEnds = -1;

  template <typename Call>
  void run(int peer, const Limit& limit, const Call& call) {
    const int64_t number = begin(peer, limit);
    end(number, call());
  }
  int64_t begin(int peer, const Limit& limit);
  void end(int64_t number, int code);
  void check() noexcept override;
  [[noreturn]] void end_this_process(const EngineError& why) noexcept;
  template <typename Start>
  void wait_for(Milliseconds timeout, const Start& start);

  void throw_if_impossible(Wait& wait);
  void throw_if_aborted();
  std::vector<int> silent_ranks();
  void notify(MpiProcess::Event event, std::string_view why) noexcept;
  int rank_of(int world_rank) const;

  MpiProcess& mpi_;
  const int rank_;
  const std::string path_;  // names of the enclosing groups and of this one
  const uint64_t id_;
  const CommEngine* engine_ = nullptr;
  std::vector<int> world_;  // rank here -> rank in MPI_COMM_WORLD
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::atomic<int64_t> running_ = kNoCall;  // number of the running call, or kProcessEnds
  int64_t calls_ = 0, watched_call_ = kNoCall;
  Wait watched_;                // and watched_call_: of the watchdog's thread
  std::atomic<int> peer_ = -1;  // of the running call, as in Wait
  std::atomic<Clock::time_point> start_;
  std::atomic<Milliseconds> timeout_;
  std::atomic<int64_t> begun_ = 0, completed_ = 0;  // collectives
  std::atomic<bool> aborted_ = false, failed_ = false;
};

}  // namespace howmany
