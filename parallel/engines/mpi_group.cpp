// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/mpi_group.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "parallel/comm/hang_timeout.h"

namespace howmany {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Event = MpiProcess::Event;

// How long a rank that failed waits for notices, to find the rank that sends none.
constexpr milliseconds kNoticeTimeout(1000);
// How long a message may still be on its way from a peer that left.
constexpr milliseconds kDeliveryTime(500);
constexpr microseconds kMinSleep(20), kMaxSleep(200);  // between tests of a nonblocking call
constexpr milliseconds kCheckInterval(10);             // between checks for failures meanwhile

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

MpiGroup::MpiGroup(MpiProcess& mpi, const std::string& name, milliseconds timeout)
    : mpi_(mpi),
      rank_(mpi.rank()),
      path_(name),
      id_(hash_of(path_)),
      world_(static_cast<size_t>(mpi.size())) {
  std::iota(world_.begin(), world_.end(), 0);
  wait_for(timeout, [this](MPI_Request* r) { return MPI_Comm_idup(MPI_COMM_WORLD, &comm_, r); });
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  mpi_.watch(*this);
}

MpiGroup::MpiGroup(MpiGroup& parent, const std::vector<int>& members, int rank,
                   const std::string& name, Limit limit)
    : mpi_(parent.mpi_), rank_(rank), path_(parent.path_ + "/" + name), id_(hash_of(path_)) {
  for (const int r : members) world_.push_back(parent.world_[static_cast<size_t>(r)]);
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(parent.comm_, &all));
  check_mpi(MPI_Group_incl(all, size(), members.data(), &some));
  parent.message(-1, limit, [&] {
    return MPI_Comm_create_group(parent.comm_, some, static_cast<int>(id_ & 0x7fff), &comm_);
  });
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Group_free(&all);
  MPI_Group_free(&some);
  mpi_.watch(*this);
}

MpiGroup::~MpiGroup() {
  mpi_.unwatch(*this);
  const bool broken = failed_ || aborted_;
  notify(broken ? Event::failed : Event::left, "has left");
  // In Open MPI and MPICH, MPI_Comm_free of an idle group does not wait for peers.
  if (!broken) MPI_Comm_free(&comm_);
}

int64_t MpiGroup::begin(int peer, const Limit& limit) {
  if (aborted_) fail(-1, "aborted");
  peer_.store(peer, std::memory_order_relaxed);
  start_.store(limit.start, std::memory_order_relaxed);
  timeout_.store(limit.timeout, std::memory_order_relaxed);
  running_.store(++calls_, std::memory_order_release);
  return calls_;
}

void MpiGroup::end(int64_t number, int code) {
  // If the watchdog has begun to end the process, this thread must not go on.
  for (int64_t expected = number; !running_.compare_exchange_strong(expected, kNoCall);
       expected = number)
    std::this_thread::sleep_for(kNoticeTimeout);
  if (code == MPI_SUCCESS) return;
  try {
    check_mpi(code);
  } catch (const EngineError& e) {
    fail(peer_, e.what());
  }
}

// On the watchdog's thread.
void MpiGroup::check() noexcept {
  int64_t number = running_.load(std::memory_order_acquire);
  if (number <= 0) return;
  if (number != std::exchange(watched_call_, number))
    watched_ = {peer_, timeout_, AwakeTime(start_)};
  if (Clock::now() - start_.load() < kCheckInterval) return;
  try {
    throw_if_impossible(watched_);
  } catch (const EngineError& e) {
    if (running_.compare_exchange_strong(number, kProcessEnds)) end_this_process(e);
  }
}

void MpiGroup::end_this_process(const EngineError& why) noexcept {
  // The thread that called abort() may report the cause itself and exit.
  if (aborted_) std::this_thread::sleep_for(kNoticeTimeout);
  try {
    fail(why.peer(), why.what());
  } catch (const EngineError& cause) {
    end_process(engine_->error_of_call(cause).what());
  }
}

template <typename Start>
void MpiGroup::wait_for(milliseconds timeout, const Start& start) {
  Wait wait{.timeout = timeout};
  MPI_Request request = MPI_REQUEST_NULL;
  try {
    check_mpi(start(&request));
    Clock::time_point checked = Clock::now();
    for (microseconds sleep = kMinSleep;; sleep = std::min(2 * sleep, kMaxSleep)) {
      int done = 0;
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done != 0) return;
      if (Clock::now() - checked > kCheckInterval) {
        throw_if_impossible(wait);
        checked = Clock::now();
      }
      std::this_thread::sleep_for(sleep);
    }
  } catch (const EngineError& e) {
    fail(e.peer(), e.what());
  }
}

void MpiGroup::assemble(milliseconds timeout) {
  begun_.store(begun_ + 1);
  wait_for(timeout, [this](MPI_Request* r) { return MPI_Ibarrier(comm_, r); });
  completed_.store(begun_);
}

// Throws if the running call can no longer complete. A peer that left after it completed this
// collective is no obstacle.
void MpiGroup::throw_if_impossible(Wait& wait) {
  if (aborted_) throw EngineError(-1, "aborted");
  const auto elapsed = wait.time.so_far();
  throw_if_aborted();
  for (const auto& notice : mpi_.notices_of(id_)) {
    const int from = rank_of(notice.from);
    const bool missed =
        wait.peer < 0 ? notice.completed < begun_ : from == wait.peer && elapsed > kDeliveryTime;
    if (missed && notice.event == Event::left) throw EngineError(from, notice.why);
    if (missed) throw EngineError(-1, notice.why);
  }
  for (int r = 0; r < size(); ++r)
    if (r != rank_ && mpi_.has_ended(world_[static_cast<size_t>(r)]))
      throw EngineError(r, "has ended");
  if (elapsed > wait.timeout) throw EngineError(-1, "nothing came");
}

void MpiGroup::throw_if_aborted() {
  for (const auto& notice : mpi_.notices_of(id_))
    if (notice.event == Event::aborted)
      throw EngineError(rank_of(notice.from), "failed: " + notice.why);
}

// If the cause is unknown (peer -1), the ranks that send no notice are the cause.
void MpiGroup::fail(int peer, const std::string& why) {
  failed_ = true;
  mpi_.skip_finalize();
  notify(Event::failed, why);
  if (peer >= 0 || aborted_) throw EngineError(peer, why);
  const std::vector<int> silent = silent_ranks();
  throw_if_aborted();  // a notice may have arrived meanwhile
  throw EngineError(silent, silent.empty() ? why : "failed: " + why);
}

std::vector<int> MpiGroup::silent_ranks() {
  std::vector<int> silent;
  for (const auto until = Clock::now() + kNoticeTimeout; Clock::now() < until;) {
    silent.clear();
    const auto notices = mpi_.notices_of(id_);
    for (int r = 0; r < size(); ++r) {
      const auto is_r = [&](const auto& notice) { return rank_of(notice.from) == r; };
      if (r != rank_ && std::ranges::none_of(notices, is_r)) silent.push_back(r);
    }
    if (silent.empty()) break;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return silent;
}

void MpiGroup::abort(std::string_view why) noexcept {
  aborted_ = true;
  notify(Event::aborted, why);
}

void MpiGroup::notify(Event event, std::string_view why) noexcept {
  std::vector<int> others;
  std::ranges::copy_if(world_, std::back_inserter(others),
                       [this](int r) { return r != mpi_.rank(); });
  mpi_.notify(id_, others, event, completed_, why);
}

int MpiGroup::rank_of(int world_rank) const {
  return static_cast<int>(std::ranges::find(world_, world_rank) - world_.begin());
}

}  // namespace howmany
