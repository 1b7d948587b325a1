// SPDX-License-Identifier: Apache-2.0
// The state that the ranks of one `local` Comm share. In its k-th collective a rank publishes its
// buffers and sets `arrived` to k. Peers may access the buffers until the rank has seen `done` = k
// of each. Waits spin for some microseconds if every rank can have a core, and then block.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/host/pause.h"
#include "parallel/comm/engine.h"
#include "parallel/engines/awake_time.h"
#include "parallel/engines/rank_slot.h"

namespace howmany {

class LocalGroup {
 public:
  // Waits spin first if `may_spin`. Set it if every rank can have a core.
  LocalGroup(std::vector<int> members, bool may_spin);

  int size() const { return static_cast<int>(members_.size()); }
  RankSlot& slot(int rank) { return slots_[static_cast<size_t>(rank)]; }

  // Blocks until missing() returns -1; else it returns a rank that has not arrived. The group fails
  // if that rank has left or does not arrive within the timeout.
  template <typename Missing>
  void wait(int rank, std::chrono::milliseconds timeout, Missing missing);
  void notify();  // required after each change that missing() may read

  // Marks `rank` as accessing its peers' buffers. Throws if the group has failed. Together with
  // throw_failure(), this keeps a buffer alive while a peer accesses it.
  void enter(int rank);
  void leave(int rank) { slot(rank).busy = false; }

  bool failed() const { return failed_; }
  void fail(int peer, std::string_view why);  // the first failure is kept
  // Throws the failure once no peer accesses this rank's buffers.
  [[noreturn]] void throw_failure(int rank);
  // Calls fail() here and in every sub-group that contains `rank`.
  void abort(int rank, std::string_view why);

  void post(PendingMessage& message);
  void take_back(PendingMessage& message);
  PendingMessage* find_message(int from, int to, int tag);

  // Returns the sub-group `id`. The first member that calls it creates the sub-group.
  std::shared_ptr<LocalGroup> child(const std::string& id, const std::vector<int>& members);

 private:
  struct Child {
    std::weak_ptr<LocalGroup> group;
    std::shared_ptr<LocalGroup> forming;  // null once every member has it
    int missing;
  };

  const std::vector<int> members_;  // ranks in the parent group
  const int spins_;
  std::unique_ptr<RankSlot[]> slots_;
  std::atomic<bool> failed_{false};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  int failed_peer_ = -1;
  std::string failed_why_;
  std::mutex letters_mutex_;
  std::list<PendingMessage*> messages_;
  std::map<std::string, Child> children_;
};

template <typename Missing>
void LocalGroup::wait(int rank, std::chrono::milliseconds timeout, Missing missing) {
  for (int i = 0; i < spins_ && !failed_; ++i) {
    if (missing() < 0) return;
    pause_cpu();
  }
  AwakeTime time;
  std::unique_lock lock(mutex_);
  ++sleepers_;
  bool late = false;
  for (int who = missing(); who >= 0 && !failed_; who = missing()) {
    const bool left = slot(who).left;
    if (left && missing() != who) continue;  // it arrived before it left
    if (left || late) {
      failed_peer_ = who;
      failed_why_ = left ? "has left the group" : "did not arrive";
      failed_ = true;
      changed_.notify_all();
      break;
    }
    changed_.wait_for(lock, AwakeTime::slice_of(timeout));
    late = time.so_far() > timeout;
  }
  --sleepers_;
  lock.unlock();
  if (failed_) throw_failure(rank);
}

}  // namespace howmany
