// What the ranks of one `local` Comm share. A rank takes part in its k-th collective by publishing
// its buffers, then `arrived` = k; peers read and write them until it has seen their `done` = k.
// Waiting spins for some microseconds, when every rank can have a core, and then blocks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "parallel/engine.h"

namespace howmany {

struct Published {
  const char* send = nullptr;
  char* receive = nullptr;
  // What must be the same on every rank of the call.
  int64_t bytes = 0;
  Dtype dtype = Dtype::f32;
  int detail = 0;  // root or ReduceOp

  bool fits(const Published& other) const {
    return bytes == other.bytes && dtype == other.dtype && detail == other.detail;
  }
};

// Written by its rank, read by all; a cache line of its own.
struct alignas(64) Seat {
  std::atomic<uint64_t> arrived{0};  // the collective's number * kOperations + which it is
  std::atomic<uint64_t> done{0};     // the collective's number * kOperations
  std::atomic<bool> busy{false};     // reads or writes peers' buffers right now
  std::atomic<bool> left{false};
  Published published;
};

// A message that waits for its receiver; lives in the sender's frame.
struct Letter {
  int from, to, tag;
  const char* data;
  int64_t bytes;
  Dtype dtype;
  std::atomic<bool> done{false};
};

class LocalGroup {
 public:
  // `may_spin`: every rank of the process can have a core.
  LocalGroup(std::vector<int> members, bool may_spin);

  int size() const { return static_cast<int>(members_.size()); }
  Seat& seat(int rank) { return seats_[static_cast<size_t>(rank)]; }

  // Blocks until missing() is -1. Otherwise it names a rank that is not there yet, and the group
  // fails when that rank does not come in time or has left.
  template <typename Missing>
  void wait(int rank, std::chrono::milliseconds timeout, Missing missing);
  void notify();  // after every change that missing() may look at

  // Marks `rank` as touching its peers' buffers; refuses once the group has failed. Together with
  // throw_failure() this lets no buffer go while a peer touches it.
  void enter(int rank);
  void leave(int rank) { seat(rank).busy = false; }

  bool failed() const { return failed_; }
  void fail(int peer, std::string_view why);  // keeps the first
  // Throws what failed, once no peer touches this rank's buffers any more.
  [[noreturn]] void throw_failure(int rank);
  // fail() here and in every sub-group `rank` is in.
  void abort(int rank, std::string_view why);

  void post(Letter& letter);
  void take_back(Letter& letter);
  Letter* find_letter(int from, int to, int tag);

  // The sub-group named `id`, made by the first of its members to ask.
  std::shared_ptr<LocalGroup> child(const std::string& id, const std::vector<int>& members);

 private:
  struct Child {
    std::weak_ptr<LocalGroup> group;
    std::shared_ptr<LocalGroup> forming;  // until every member has it
    int missing;
  };

  const std::vector<int> members_;  // as ranks of the group this one was split from
  const int spins_;
  std::unique_ptr<Seat[]> seats_;
  std::atomic<bool> failed_{false};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  int failed_peer_ = -1;
  std::string failed_why_;
  std::mutex letters_mutex_;
  std::list<Letter*> letters_;
  std::map<std::string, Child> children_;
};

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <typename Missing>
void LocalGroup::wait(int rank, std::chrono::milliseconds timeout, Missing missing) {
  for (int i = 0; i < spins_ && !failed_; ++i) {
    if (missing() < 0) return;
    pause_cpu();
  }
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(mutex_);
  ++sleepers_;
  bool late = false;
  for (int who = missing(); who >= 0 && !failed_; who = missing()) {
    const bool left = seat(who).left;
    if (left && missing() != who) continue;  // it came before it left
    if (left || late) {
      failed_peer_ = who;
      failed_why_ = left ? "has left the group" : "did not arrive";
      failed_ = true;
      changed_.notify_all();
      break;
    }
    late = changed_.wait_until(lock, deadline) == std::cv_status::timeout;
  }
  --sleepers_;
  lock.unlock();
  if (failed_) throw_failure(rank);
}

}  // namespace howmany
