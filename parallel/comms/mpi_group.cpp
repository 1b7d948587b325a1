// How a waiting thread polls: MPI moves data inside its calls only, so the thread asks without rest
// for as long as a short message takes, then asks and yields in turn, which leaves the core to
// whoever computes there. When for a millisecond neither MPI nor
// anyone else had a use for the core (each turn was short), it sleeps, a little longer each time,
// up to 0.2 ms; a message that comes then is late by at most that. MPI's own mpi_yield_when_idle
// governs blocking calls, of which there are none here.
#include "parallel/comms/mpi_group.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/error.h"
#include "parallel/engine.h"

namespace howmany {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Word = MpiProcess::Word;

constexpr int kAsks = 16;
constexpr microseconds kBusy(3), kSpin(10), kIdle(1000), kShortSleep(20), kLongSleep(200);
// How long a rank that failed waits for word from the others, to tell who is silent, and how long a
// message may still be on its way from a peer that left.
constexpr milliseconds kInquiry(1000), kLateMail(500);
// Between looks for trouble while it polls: MPI may be slow without moving anything, as it is once
// a peer's connection broke. And between those that calls begin with, which cost a microsecond.
constexpr milliseconds kBusyLook(10), kFirstLook(1);

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
  collective({}, timeout,
             [this](MPI_Request* r) { return MPI_Comm_idup(MPI_COMM_WORLD, &comm_, r); });
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

MpiGroup::MpiGroup(const MpiGroup& parent, const std::vector<int>& members, int rank,
                   const std::string& name)
    : mpi_(parent.mpi_), rank_(rank), path_(parent.path_ + "/" + name), id_(hash_of(path_)) {
  for (const int r : members) world_.push_back(parent.world_[static_cast<size_t>(r)]);
  const auto locked = mpi_.lock();
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(parent.comm_, &all));
  check_mpi(MPI_Group_incl(all, size(), members.data(), &some));
  check_mpi(MPI_Comm_create_group(parent.comm_, some, static_cast<int>(id_ & 0x7fff), &comm_));
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  MPI_Group_free(&all);
  MPI_Group_free(&some);
}

MpiGroup::~MpiGroup() {
  const bool broken = failed_ || aborted_;
  tell(broken ? Word::failed : Word::left, "has left");
  // Open MPI's and MPICH's MPI_Comm_free of an idle group wait for nobody.
  const auto locked = mpi_.lock();
  if (!broken) MPI_Comm_free(&comm_);
}

void MpiGroup::collective(Buffers buffers, milliseconds timeout, const Start& start) {
  collective([&] { step(buffers, timeout, start); });
}

void MpiGroup::step(Buffers buffers, milliseconds timeout, const Start& start) {
  run({-1, Clock::now(), timeout}, buffers, start);
}

MPI_Status MpiGroup::message(int peer, Buffers buffers, milliseconds timeout, const Start& start) {
  return run({peer, Clock::now(), timeout}, buffers, start);
}

MPI_Status MpiGroup::run(Wait wait, Buffers buffers, const Start& start) {
  MPI_Request requests[kCalls];
  std::ranges::fill(requests, MPI_REQUEST_NULL);
  try {
    if (aborted_ || wait.start > looked_ + kFirstLook) stop_on_trouble(wait);
    {
      const auto locked = mpi_.lock();
      check_mpi(start(requests));
      if (const auto status = ask(requests)) return *status;
    }
    return poll(requests, wait);
  } catch (const EngineError& e) {
    mpi_.abandon(buffers);
    give_up(e.peer(), e.what());
  }
}

// Of several requests MPI tells by their statuses which failed.
void MpiGroup::check(int code, const MPI_Status statuses[kCalls]) {
  for (int i = 0; i < kCalls && code == MPI_ERR_IN_STATUS; ++i) {
    const MPI_Status& one = statuses[i];
    if (one.MPI_ERROR == MPI_ERR_TRUNCATE)
      throw EngineError(one.MPI_SOURCE, "sent more than was asked for");
    if (one.MPI_ERROR != MPI_ERR_PENDING) check_mpi(one.MPI_ERROR);
  }
  check_mpi(code);
}

// Several times at once, under the lock: a long message moves piece by piece, one each time. The
// first status.
std::optional<MPI_Status> MpiGroup::ask(MPI_Request requests[kCalls]) {
  MPI_Status statuses[kCalls];
  for (int done = 0, times = 0; times < kAsks; ++times) {
    check(MPI_Testall(kCalls, requests, &done, statuses), statuses);
    if (done != 0) return statuses[0];
  }
  return {};
}

MPI_Status MpiGroup::poll(MPI_Request requests[kCalls], const Wait& wait) {
  microseconds sleep = kShortSleep;
  Clock::time_point last = wait.start, used = wait.start, look = wait.start + kBusyLook;
  for (;;) {
    if (const auto locked = mpi_.lock(); const auto status = ask(requests)) return *status;
    const auto now = Clock::now();
    if (now - last > kBusy) used = now;
    last = now;
    const bool idle = now - used > kIdle;
    if (idle || now > look) {
      stop_on_trouble(wait);
      look = now + kBusyLook;
    }
    if (!idle) {
      if (now - wait.start > kSpin) std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(sleep);
    sleep = std::min(2 * sleep, kLongSleep);
    last = Clock::now();
  }
}

// Throws when the call can no longer end well: it was aborted, it is late, a peer gave up. A peer
// that left, but completed this collective before, did its part.
void MpiGroup::stop_on_trouble(const Wait& wait) {
  if (aborted_) throw EngineError(-1, "aborted");
  looked_ = Clock::now();
  const auto elapsed = looked_ - wait.start;
  throw_if_aborted();
  for (const auto& notice : mpi_.heard(id_)) {
    const int from = rank_of(notice.from);
    const bool missed =
        wait.peer < 0 ? notice.turn < turn_ : from == wait.peer && elapsed > kLateMail;
    if (missed && notice.word == Word::left) throw EngineError(from, notice.why);
    if (missed) throw EngineError(-1, notice.why);
  }
  look_for_the_dead();
  if (elapsed > wait.timeout) throw EngineError(-1, "nothing came");
}

void MpiGroup::throw_if_aborted() {
  for (const auto& notice : mpi_.heard(id_))
    if (notice.word == Word::aborted)
      throw EngineError(rank_of(notice.from), "failed: " + notice.why);
}

// A look at the file system now and then.
void MpiGroup::look_for_the_dead() {
  if (Clock::now() < next_look_) return;
  next_look_ = Clock::now() + milliseconds(50);
  for (int r = 0; r < size(); ++r)
    if (r != rank_ && mpi_.has_ended(world_[static_cast<size_t>(r)]))
      throw EngineError(r, "has ended");
}

// When the cause is not known (peer -1), whoever stays silent is it.
void MpiGroup::give_up(int peer, const std::string& why) {
  failed_ = true;
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
