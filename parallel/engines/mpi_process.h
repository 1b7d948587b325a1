// SPDX-License-Identifier: Apache-2.0
// MpiProcess: MPI in this process, initialized once for all groups and finalized with the process.
// Thread-safe.
//
// Threads. Requests MPI_THREAD_MULTIPLE, as Horovod does: each group calls MPI from its own thread.
// Watchdog. A blocked MPI call cannot be left, so a thread checks the running call of every group
//   every 20 ms.
// Notices. Ranks notify each other on a communicator of their own if they fail, abort or leave a
//   group, which MPI does not report. howmany's launcher reports dead ranks by exit files
//   (mpirun.cpp).
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

// Throws EngineError with MPI's text if `code` is not MPI_SUCCESS.
void check_mpi(int code);

// Something that the watchdog checks, on its own thread.
class MpiWatched {
 public:
  virtual ~MpiWatched() = default;
  virtual void check() noexcept = 0;
};

class MpiProcess {
 public:
  // Initializes MPI on the first call. Throws EngineError if MPI does not provide
  // MPI_THREAD_MULTIPLE, std::invalid_argument if no mpirun or srun started this process.
  static MpiProcess& get();

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::map<std::string, std::string> details() const;

  enum class Event : int { left, failed, aborted };
  struct Notice {
    int from = 0;  // rank in MPI_COMM_WORLD
    Event event = Event::left;
    int64_t completed = 0;  // collectives of the group that `from` had completed
    std::string why;
  };
  // Sends a notice to the ranks `to` of MPI_COMM_WORLD. Does not block.
  void notify(uint64_t group, const std::vector<int>& to, Event event, int64_t completed,
              std::string_view why) noexcept;
  // Returns all notices about the group so far.
  std::vector<Notice> notices_of(uint64_t group);

  // Returns true if the launcher reports that rank `r` of MPI_COMM_WORLD ended.
  bool has_ended(int r) const;
  // After a failure: MPI_Finalize would wait for peers.
  void skip_finalize() { skips_finalize_ = true; }

  void watch(MpiWatched& group);
  void unwatch(MpiWatched& group);  // blocks while the watchdog checks it

 private:
  MpiProcess();
  ~MpiProcess();
  void receive_notices();
  void run_watchdog(const std::stop_token& stop);

  struct Message {
    uint64_t group;
    int64_t completed;
    int32_t event;
    char why[236];
  };
  struct Outgoing {
    MPI_Request request;
    Message message;
  };

  std::mutex mutex_;  // guards notices_ and outgoing_
  int rank_ = 0, size_ = 1, level_ = 0;
  MPI_Comm notice_comm_ = MPI_COMM_NULL;
  std::map<uint64_t, std::vector<Notice>> notices_;
  std::vector<std::unique_ptr<Outgoing>> outgoing_;
  std::atomic<bool> skips_finalize_ = false;
  std::string exits_;  // folder of the exit files; empty if there is none

  std::mutex watch_mutex_;
  std::condition_variable_any woken_;
  std::vector<MpiWatched*> watched_;
  std::jthread watchdog_;  // started by the first group
};

}  // namespace howmany
