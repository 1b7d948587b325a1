#include "parallel/comms/mpi_group.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "parallel/patience.h"

namespace howmany {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Word = MpiProcess::Word;

// How long a rank that failed waits for word from the others, to tell who is silent, and how long a
// message may still be on its way from a peer that left.
constexpr milliseconds kInquiry(1000), kLateMail(500);
constexpr microseconds kShortSleep(20), kLongSleep(200);  // between looks at a nonblocking call
constexpr milliseconds kBetweenLooks(10);                 // for trouble, meanwhile

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
  tell(broken ? Word::failed : Word::left, "has left");
  // Open MPI's and MPICH's MPI_Comm_free of an idle group wait for nobody.
  if (!broken) MPI_Comm_free(&comm_);
}

int64_t MpiGroup::begin(int peer, const Limit& limit) {
  if (aborted_) give_up(-1, "aborted");
  peer_.store(peer, std::memory_order_relaxed);
  start_.store(limit.start, std::memory_order_relaxed);
  timeout_.store(limit.timeout, std::memory_order_relaxed);
  running_.store(++calls_, std::memory_order_release);
  return calls_;
}

void MpiGroup::end(int64_t number, int code) {
  // A condemned process is about to end: what this thread would do is over.
  while (!running_.compare_exchange_strong(number, kNone)) std::this_thread::sleep_for(kInquiry);
  if (code == MPI_SUCCESS) return;
  try {
    check_mpi(code);
  } catch (const EngineError& e) {
    give_up(peer_, e.what());
  }
}

// Called by the watchdog.
void MpiGroup::look() noexcept {
  int64_t number = running_.load(std::memory_order_acquire);
  if (number <= 0) return;
  const Wait wait{peer_, {start_, timeout_}};
  if (Clock::now() - wait.limit.start < kBetweenLooks) return;
  try {
    stop_on_trouble(wait);
  } catch (const EngineError& e) {
    if (running_.compare_exchange_strong(number, kCondemned)) condemn(e);
  }
}

void MpiGroup::condemn(const EngineError& why) noexcept {
  if (aborted_) std::this_thread::sleep_for(kInquiry);  // whoever aborted may tell why itself
  try {
    give_up(why.peer(), why.what());
  } catch (const EngineError& verdict) {
    end_process(engine_->error_of_call(verdict).what());
  }
}

template <typename Start>
void MpiGroup::wait_for(milliseconds timeout, const Start& start) {
  const Wait wait{-1, {.timeout = timeout}};
  MPI_Request request = MPI_REQUEST_NULL;
  try {
    check_mpi(start(&request));
    Clock::time_point looked = wait.limit.start;
    for (microseconds sleep = kShortSleep;; sleep = std::min(2 * sleep, kLongSleep)) {
      int done = 0;
      check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      if (done != 0) return;
      if (Clock::now() - looked > kBetweenLooks) {
        stop_on_trouble(wait);
        looked = Clock::now();
      }
      std::this_thread::sleep_for(sleep);
    }
  } catch (const EngineError& e) {
    give_up(e.peer(), e.what());
  }
}

void MpiGroup::assemble(milliseconds timeout) {
  turn_.store(turn_ + 1);
  wait_for(timeout, [this](MPI_Request* r) { return MPI_Ibarrier(comm_, r); });
  done_.store(turn_);
}

// Throws when the call can no longer end well. A peer that left, but completed this collective
// before, did its part.
void MpiGroup::stop_on_trouble(const Wait& wait) {
  if (aborted_) throw EngineError(-1, "aborted");
  const auto elapsed = Clock::now() - wait.limit.start;
  throw_if_aborted();
  for (const auto& notice : mpi_.heard(id_)) {
    const int from = rank_of(notice.from);
    const bool missed =
        wait.peer < 0 ? notice.turn < turn_ : from == wait.peer && elapsed > kLateMail;
    if (missed && notice.word == Word::left) throw EngineError(from, notice.why);
    if (missed) throw EngineError(-1, notice.why);
  }
  for (int r = 0; r < size(); ++r)
    if (r != rank_ && mpi_.has_ended(world_[static_cast<size_t>(r)]))
      throw EngineError(r, "has ended");
  if (elapsed > wait.limit.timeout) throw EngineError(-1, "nothing came");
}

void MpiGroup::throw_if_aborted() {
  for (const auto& notice : mpi_.heard(id_))
    if (notice.word == Word::aborted)
      throw EngineError(rank_of(notice.from), "failed: " + notice.why);
}

// When the cause is not known (peer -1), whoever stays silent is it.
void MpiGroup::give_up(int peer, const std::string& why) {
  failed_ = true;
  mpi_.spoil();
  tell(Word::failed, why);
  if (peer >= 0 || aborted_) throw EngineError(peer, why);
  const std::vector<int> silent = silent_ranks();
  throw_if_aborted();  // word that came meanwhile
  throw EngineError(silent, silent.empty() ? why : "failed: " + why);
}

std::vector<int> MpiGroup::silent_ranks() {
  std::vector<int> silent;
  for (const auto until = Clock::now() + kInquiry; Clock::now() < until;) {
    silent.clear();
    const auto heard = mpi_.heard(id_);
    for (int r = 0; r < size(); ++r) {
      const auto is_r = [&](const auto& notice) { return rank_of(notice.from) == r; };
      if (r != rank_ && std::ranges::none_of(heard, is_r)) silent.push_back(r);
    }
    if (silent.empty()) break;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return silent;
}

void MpiGroup::abort(std::string_view why) noexcept {
  aborted_ = true;
  tell(Word::aborted, why);
}

void MpiGroup::tell(Word word, std::string_view why) noexcept {
  std::vector<int> others;
  std::ranges::copy_if(world_, std::back_inserter(others),
                       [this](int r) { return r != mpi_.rank(); });
  mpi_.tell(id_, others, word, done_, why);
}

int MpiGroup::rank_of(int world_rank) const {
  return static_cast<int>(std::ranges::find(world_, world_rank) - world_.begin());
}

}  // namespace howmany
