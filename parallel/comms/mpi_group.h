// A communicator of MPI, and what is known of its ranks. Calls are MPI's own blocking ones, made by
// the calling thread, one at a time. The watchdog of MpiProcess looks at the one that runs: if it
// can no longer end well (it is late, or a peer gave up, left or died), then nothing can bring its
// thread back, and the group says whose fault it is and ends the process (patience.h).
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comms/mpi_process.h"
#include "parallel/engine.h"

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
  // Those members (ranks of parent, this process is members[rank]); called by them alone, at the
  // same time.
  MpiGroup(MpiGroup& parent, const std::vector<int>& members, int rank, const std::string& name,
           Limit limit);
  ~MpiGroup() override;
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  // Whose calls these are. Before the first one.
  void serve(const CommEngine& engine) { engine_ = &engine; }

  MpiProcess& process() const { return mpi_; }
  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(world_.size()); }

  // call() is a blocking call of MPI and returns its code. Throw EngineError.
  template <typename Call>
  void collective(const Limit& limit, const Call& call) {
    const int64_t turn = turn_.load(std::memory_order_relaxed) + 1;  // no other thread writes it
    turn_.store(turn, std::memory_order_relaxed);
    run(-1, limit, call);
    done_.store(turn, std::memory_order_relaxed);
  }
  template <typename Call>
  void message(int peer, const Limit& limit, const Call& call) {
    run(peer, limit, call);
  }
  // Returns when all ranks called it. Sleeps meanwhile, since it may be long, and throws as it
  // waits for a nonblocking call.
  void assemble(Milliseconds timeout);
  // After a call that ended, but not well: the others learn of it.
  [[noreturn]] void give_up(int peer, const std::string& why);
  void abort(std::string_view why) noexcept;

 private:
  struct Wait {
    int peer = -1;  // -1: all, in a collective
    Limit limit;
  };
  static constexpr int64_t kNone = 0, kCondemned = -1;

  template <typename Call>
  void run(int peer, const Limit& limit, const Call& call) {
    const int64_t number = begin(peer, limit);
    end(number, call());
  }
  int64_t begin(int peer, const Limit& limit);
  void end(int64_t number, int code);
  void look() noexcept override;
  [[noreturn]] void condemn(const EngineError& why) noexcept;
  template <typename Start>
  void wait_for(Milliseconds timeout, const Start& start);

  void stop_on_trouble(const Wait& wait);
  void throw_if_aborted();
  std::vector<int> silent_ranks();
  void tell(MpiProcess::Word word, std::string_view why) noexcept;
  int rank_of(int world_rank) const;

  MpiProcess& mpi_;
  const int rank_;
  const std::string path_;  // the names of the groups down to this one
  const uint64_t id_;
  const CommEngine* engine_ = nullptr;
  std::vector<int> world_;  // rank here -> rank in MPI_COMM_WORLD
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::atomic<int64_t> running_ = kNone;  // the number of a call, or kCondemned
  int64_t calls_ = 0;
  std::atomic<int> peer_ = -1;  // of that call, as in Wait
  std::atomic<Clock::time_point> start_;
  std::atomic<Milliseconds> timeout_;
  std::atomic<int64_t> turn_ = 0;  // collectives begun
  std::atomic<int64_t> done_ = 0;  // and completed
  std::atomic<bool> aborted_ = false, failed_ = false;
};

}  // namespace howmany
