// MPI in this process: started once, for all groups, and ended with the process. It is asked for
// MPI_THREAD_MULTIPLE, as Horovod asks: groups call from threads of their own, and a blocked call
// must not hold up another group's. Thread-safe.
//
// A call of MPI that has begun cannot be left. So a thread of this class, the watchdog, looks at
// the running calls of every group every 20 ms, and decides when one can no longer end well. Ranks
// also tell each other here, beside the data, that they gave a group up: MPI itself has no word for
// that. Under mpirun a rank that dies is told by the exit file that howmany's own launcher writes
// (see mpirun.cpp).
#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace howmany {

// Throws EngineError with MPI's text unless `code` is MPI_SUCCESS.
void check_mpi(int code);

// Something that the watchdog looks at, from its own thread.
class MpiWatched {
 public:
  virtual ~MpiWatched() = default;
  virtual void look() noexcept = 0;
};

class MpiProcess {
 public:
  // Starts MPI on the first call. Throws EngineError when it grants no thread level that will do,
  // std::invalid_argument when no mpirun or srun started this process.
  static MpiProcess& get();

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::map<std::string, std::string> details() const;

  enum class Word : int { left, failed, aborted };
  struct Notice {
    int from = 0;  // rank in MPI_COMM_WORLD
    Word word = Word::left;
    int64_t turn = 0;  // collectives of the group that `from` had completed
    std::string why;
  };
  // To the ranks `to` of MPI_COMM_WORLD that share the group. Does not wait for them.
  void tell(uint64_t group, const std::vector<int>& to, Word word, int64_t turn,
            std::string_view why) noexcept;
  // Everything told about the group until now.
  std::vector<Notice> heard(uint64_t group);

  // Whether rank `r` of MPI_COMM_WORLD ended, as far as the launcher tells.
  bool has_ended(int r) const;
  // MPI cannot be ended in good order any more, which would wait for the others.
  void spoil() { spoiled_ = true; }

  void watch(MpiWatched& group);
  void unwatch(MpiWatched& group);  // returns when nobody looks at it any more

 private:
  MpiProcess();
  ~MpiProcess();
  void take_in();
  void work_as_watchdog(const std::stop_token& stop);

  struct Message {
    uint64_t group;
    int64_t turn;
    int32_t word;
    char why[236];
  };
  struct Outgoing {
    MPI_Request request;
    Message message;
  };

  std::mutex mutex_;  // of the notices
  int rank_ = 0, size_ = 1, level_ = 0;
  MPI_Comm words_ = MPI_COMM_NULL;
  std::map<uint64_t, std::vector<Notice>> notices_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::atomic<bool> spoiled_ = false;
  std::string exits_;  // folder of the exit files; empty when there are none

  std::mutex watch_mutex_;
  std::condition_variable_any woken_;
  std::vector<MpiWatched*> watched_;
  std::jthread watchdog_;  // started by the first group
};

}  // namespace howmany
