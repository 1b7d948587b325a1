// SPDX-License-Identifier: Apache-2.0
#include "parallel/rehearsal.h"

#include <sys/prctl.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/host/copy.h"
#include "parallel/engine.h"

namespace howmany {

struct Rehearsal::State {
  struct Entry {
    RehearsedCall call;
    std::shared_ptr<const CommEngine::Queued> queued;  // null if the call was blocking
  };
  const CostTable costs;
  std::mutex mutex;
  std::vector<Entry> log;  // guarded by the mutex
};

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
  char* const target = static_cast<char*>(to.mutable_raw()) + at;
  const char* const source = static_cast<const char*>(from.raw()) + begin;
  if (target != source) copy_host(target, source, static_cast<size_t>(bytes));
}

class Rehearsed : public CommEngine {
 public:
  Rehearsed(int rank, int size, std::shared_ptr<Rehearsal::State> state)
      : CommEngine(rank, size), state_(std::move(state)) {}

  std::string_view name() const override { return "rehearsal"; }

  void all_reduce(Tensor& t, ReduceOp) override { spend("all_reduce", t.bytes()); }
  void broadcast(Tensor& t, int) override { spend("broadcast", t.bytes()); }
  void all_gather(const Tensor& send, Tensor& receive) override {
    repeat(send, receive);
    spend("all_gather", receive.bytes());
  }
  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp) override {
    copy_into(receive, 0, send, rank() * receive.bytes(), receive.bytes());
    spend("reduce_scatter", send.bytes());
  }
  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp) override {
    if (rank() == root) copy_into(receive, 0, send, 0, send.bytes());
    spend("broadcast", send.bytes());
  }
  void gather(const Tensor& send, Tensor& receive, int root) override {
    if (rank() == root) repeat(send, receive);
    spend("all_gather", send.bytes() * size());
  }
  void scatter(const Tensor& send, Tensor& receive, int root) override {
    if (rank() == root) copy_into(receive, 0, send, rank() * receive.bytes(), receive.bytes());
    spend("broadcast", receive.bytes() * size());
  }
  void all_to_all(const Tensor& send, Tensor& receive) override {
    copy_into(receive, 0, send, 0, send.bytes());
    spend("all_gather", send.bytes());
  }
  void send(const Tensor&, int peer, int) override { refuse(peer); }
  void receive(Tensor&, int peer, int) override { refuse(peer); }
  void barrier() override { spend("all_reduce", sizeof(double)); }

  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string&) override {
    return std::make_unique<Rehearsed>(index, static_cast<int>(members.size()), state_);
  }
  void abort(std::string_view) noexcept override {}

 private:
  [[noreturn]] static void refuse(int peer) {
    throw EngineError(peer, "in a rehearsal no other rank sends or receives");
  }

  // The part of every rank is this rank's.
  void repeat(const Tensor& part, Tensor& whole) const {
    for (int r = 0; r < size(); ++r) copy_into(whole, r * part.bytes(), part, 0, part.bytes());
  }

  void spend(const char* kind, int64_t bytes) {
    wake_on_time();
    const auto amount = static_cast<double>(bytes);
    const Clock::time_point at = queued() ? queued()->at : Clock::now();
    const double seconds = state_->costs.seconds(kind, amount);
    free_at_ = std::max(at, free_at_) + duration_of(seconds);
    burn(state_->costs.core_s_per_call + state_->costs.core_s_per_byte * amount);
    std::this_thread::sleep_until(free_at_);
    std::lock_guard lock(state_->mutex);
    state_->log.push_back({{kind, amount, size(), at, seconds}, queued()});
  }

  const std::shared_ptr<Rehearsal::State> state_;
  Clock::time_point free_at_ = {};
};

}  // namespace

double CostTable::seconds(const std::string& kind, double bytes) const {
  const auto found = points.find(kind);
  if (found == points.end()) throw std::out_of_range("the cost table has no " + kind);
  const auto& all = found->second;
  const auto next = std::ranges::lower_bound(all, bytes, {}, &std::pair<double, double>::first);
  if (next == all.begin()) return next->second;
  const auto [low_bytes, low] = *std::prev(next);
  if (next == all.end()) return low * bytes / low_bytes;
  return low + (next->second - low) * (bytes - low_bytes) / (next->first - low_bytes);
}

CostTable no_costs(int world) {
  CostTable costs;
  costs.world = world;
  for (const char* kind : {"all_reduce", "reduce_scatter", "all_gather", "broadcast"})
    costs.points[kind] = {{1, 0}};
  return costs;
}

Rehearsal::Rehearsal(CostTable costs) : state_(std::make_shared<State>(std::move(costs))) {}
Rehearsal::~Rehearsal() = default;

const CostTable& Rehearsal::costs() const { return state_->costs; }

std::unique_ptr<Comm> Rehearsal::join(int rank) const {
  return std::make_unique<Comm>(std::make_unique<Rehearsed>(rank, costs().world, state_));
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
