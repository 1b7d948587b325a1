// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/rehearsal.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/host/copy.h"
#include "parallel/engines/rehearsal_engine.h"

namespace howmany {
namespace {

// Linux wakes a thread up to 50 us late to save energy.
void wake_on_time() {
  thread_local bool done = false;
  if (!std::exchange(done, true)) ::prctl(PR_SET_TIMERSLACK, 1);
}

void burn(double seconds) {
  const double start = thread_seconds();
  while (thread_seconds() - start < seconds) {
  }
}

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void copy_into(Tensor& to, int64_t at, const Tensor& from, int64_t begin, int64_t bytes) {
  if (to.device().type == DeviceType::meta) return;
  char* const target = static_cast<char*>(to.mutable_raw()) + at;
  const char* const source = static_cast<const char*>(from.raw()) + begin;
  if (target != source) copy_host(target, source, static_cast<size_t>(bytes));
}

// The part of every rank is this rank's.
void repeat(const Tensor& part, Tensor& whole, int ranks) {
  for (int r = 0; r < ranks; ++r) copy_into(whole, r * part.bytes(), part, 0, part.bytes());
}

[[noreturn]] void refuse(int peer) {
  throw EngineError(peer, "in a rehearsal this rank neither sends nor receives");
}

}  // namespace

namespace comms {

void Rehearsed::all_reduce(Tensor& t, ReduceOp) { spend("all_reduce", t.bytes()); }

void Rehearsed::broadcast(Tensor& t, int) { spend("broadcast", t.bytes()); }

void Rehearsed::all_gather(const Tensor& send, Tensor& receive) {
  repeat(send, receive, size());
  spend("all_gather", receive.bytes());
}

// An engine runs one call at a time, so the next one frees it.
std::shared_ptr<void> Rehearsed::scratch_on_meta(const Tensor& send) {
  if (!costs().scatter_takes_copy || send.device().type != DeviceType::meta) return nullptr;
  if (const auto last = scratch_.lock()) *last = Tensor();
  const auto copy =
      std::make_shared<Tensor>(Tensor::empty(send.shape(), send.dtype(), send.device()));
  scratch_ = copy;
  return copy;
}

void Rehearsed::reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp) {
  copy_into(receive, 0, send, rank() * receive.bytes(), receive.bytes());
  spend("reduce_scatter", send.bytes());
}

void Rehearsed::reduce(const Tensor& send, Tensor& receive, int root, ReduceOp) {
  if (rank() == root) copy_into(receive, 0, send, 0, send.bytes());
  spend("broadcast", send.bytes());
}

void Rehearsed::gather(const Tensor& send, Tensor& receive, int root) {
  if (rank() == root) repeat(send, receive, size());
  spend("all_gather", send.bytes() * size());
}

void Rehearsed::scatter(const Tensor& send, Tensor& receive, int root) {
  if (rank() == root) copy_into(receive, 0, send, rank() * receive.bytes(), receive.bytes());
  spend("broadcast", receive.bytes() * size());
}

void Rehearsed::all_to_all(const Tensor& send, Tensor& receive) {
  copy_into(receive, 0, send, 0, send.bytes());
  spend("all_gather", send.bytes());
}

void Rehearsed::send(const Tensor&, int peer, int) { refuse(peer); }
void Rehearsed::receive(Tensor&, int peer, int) { refuse(peer); }
void Rehearsed::barrier() { spend("all_reduce", sizeof(double)); }

std::unique_ptr<CommEngine> Rehearsed::split(const std::vector<int>& members, int index,
                                             const std::string&) {
  return std::make_unique<Rehearsed>(index, group_of(members), state_);
}

void Rehearsed::abort(std::string_view) noexcept {}

EvenGroup Rehearsed::group_of(const std::vector<int>& members) const {
  const int ranks = static_cast<int>(members.size());
  const int stride = ranks > 1 ? members[1] - members[0] : 1;
  for (int i = 1; i < ranks; ++i)
    HM_REQUIRE(stride > 0 && members[i] - members[i - 1] == stride,
               "[rehearsal] ranks of a group are evenly spaced");
  return {ranks, stride * group_.stride};
}

double Rehearsed::core_seconds(double bytes) const {
  return costs().core_s_per_call + costs().core_s_per_byte * bytes;
}

void Rehearsed::spend(const char* kind, int64_t bytes) {
  wake_on_time();
  const auto amount = static_cast<double>(bytes);
  const Clock::time_point at = queued() ? queued()->at : Clock::now();
  const double seconds = costs().seconds(kind, amount, group_);
  free_at_ = std::max(at, free_at_) + duration_of(seconds);
  burn(core_seconds(amount));
  std::this_thread::sleep_until(free_at_);
  std::lock_guard lock(state_->mutex);
  state_->log.push_back({{kind, amount, group_, at, seconds}, queued()});
}

}  // namespace comms

double CostTable::seconds(const std::string& kind, double bytes, EvenGroup group) const {
  if (groups.empty() || group.ranks == 1) return 0;
  const auto points = groups.find(group);
  if (points == groups.end())
    throw std::out_of_range(fmt::format("the cost table has no group of {} ranks, {} apart",
                                        group.ranks, group.stride));
  const auto found = points->second.find(kind);
  if (found == points->second.end()) throw std::out_of_range("the cost table has no " + kind);
  const auto& all = found->second;
  const auto next = std::ranges::lower_bound(all, bytes, {}, &std::pair<double, double>::first);
  if (next == all.begin()) return next->second;
  const auto [low_bytes, low] = *std::prev(next);
  if (next == all.end()) return low * bytes / low_bytes;
  return low + (next->second - low) * (bytes - low_bytes) / (next->first - low_bytes);
}

Rehearsal::Rehearsal(CostTable costs)
    : state_(std::make_shared<RehearsalState>(std::move(costs))) {}
Rehearsal::~Rehearsal() = default;

const CostTable& Rehearsal::costs() const { return state_->costs; }

std::unique_ptr<Comm> Rehearsal::join(int rank) const {
  return std::make_unique<Comm>(
      std::make_unique<comms::Rehearsed>(rank, EvenGroup{costs().world, 1}, state_));
}

std::vector<std::unique_ptr<Comm>> Rehearsal::join_in_turns(
    const std::vector<int>& ranks, const std::vector<std::shared_ptr<Turn>>& turns) const {
  HM_REQUIRE(ranks.size() == turns.size(), "[rehearsal] {} ranks have {} clocks", ranks.size(),
             turns.size());
  auto here = comms::local_group(static_cast<int>(ranks.size()), false);
  std::vector<std::unique_ptr<Comm>> joined;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const comms::InTurns::Ranks all{{costs().world, 1}, 0, ranks};
    joined.push_back(std::make_unique<Comm>(
        std::make_unique<comms::InTurns>(ranks[i], all, state_, turns[i], std::move(here[i]))));
    joined.back()->set_timeout(kTurnsTimeout);
  }
  return joined;
}

std::vector<RehearsedCall> Rehearsal::take_log() {
  std::lock_guard lock(state_->mutex);
  std::vector<RehearsedCall> calls;
  for (auto& [call, queued] : std::exchange(state_->log, {})) {
    const Clock::time_point began = queued ? queued->waited.load() : call.at;
    if (began != Clock::time_point{}) call.waited = began;
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace howmany
