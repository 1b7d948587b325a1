// A communicator of MPI and what is known of its ranks: runs nonblocking calls until they are done,
// late, or beyond hope because a peer gave up, left or died. One call at a time; abort() from any
// thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comms/mpi_process.h"

namespace howmany {

class MpiGroup {
 public:
  // Starts as many calls at most, under the lock of MpiProcess; the first has the status.
  static constexpr int kCalls = 4;
  using Start = std::function<int(MPI_Request requests[kCalls])>;
  using Buffers = std::initializer_list<const Tensor*>;

  // All ranks of MPI; collective. `name` is never used again.
  MpiGroup(MpiProcess& mpi, const std::string& name, std::chrono::milliseconds timeout);
  // Those members (ranks of parent, this process is members[rank]); called by them alone, at the
  // same time: creating it waits for all of them without a limit.
  MpiGroup(const MpiGroup& parent, const std::vector<int>& members, int rank,
           const std::string& name);
  ~MpiGroup();
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  MpiProcess& process() const { return mpi_; }
  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(world_.size()); }

  // Throw EngineError. `buffers` are those that the call may touch.
  void collective(Buffers buffers, std::chrono::milliseconds timeout, const Start& start);
  template <typename Body>
  void collective(const Body& body) {  // of several steps
    ++turn_;
    body();
    done_ = turn_;
  }
  void step(Buffers buffers, std::chrono::milliseconds timeout, const Start& start);
  MPI_Status message(int peer, Buffers buffers, std::chrono::milliseconds timeout,
                     const Start& start);
  // After a call that ended, but not well: the others learn of it.
  [[noreturn]] void give_up(int peer, const std::string& why);
  void abort(std::string_view why) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Wait {
    int peer;  // -1: all, in a collective
    Clock::time_point start;
    std::chrono::milliseconds timeout;
  };

  MPI_Status run(Wait wait, Buffers buffers, const Start& start);
  std::optional<MPI_Status> ask(MPI_Request requests[kCalls]);
  static void check(int code, const MPI_Status statuses[kCalls]);
  MPI_Status poll(MPI_Request requests[kCalls], const Wait& wait);
  void stop_on_trouble(const Wait& wait);
  void throw_if_aborted();
  void look_for_the_dead();
  std::vector<int> silent_ranks();
  void tell(MpiProcess::Word word, std::string_view why) noexcept;
  int rank_of(int world_rank) const;

  MpiProcess& mpi_;
  const int rank_;
  const std::string path_;  // the names of the groups down to this one
  const uint64_t id_;
  std::vector<int> world_;  // rank here -> rank in MPI_COMM_WORLD
  MPI_Comm comm_ = MPI_COMM_NULL;
  int64_t turn_ = 0;               // collectives begun
  std::atomic<int64_t> done_ = 0;  // and completed
  std::atomic<bool> aborted_ = false, failed_ = false;
  Clock::time_point next_look_, looked_;  // for the dead; for trouble
};

}  // namespace howmany
