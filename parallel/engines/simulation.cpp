// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <stdexcept>

#include "core/base/error.h"
#include "core/host/copy.h"
#include "parallel/comm/engine.h"

namespace howmany {
namespace {

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

}  // namespace

struct Simulation::State {
  const CostTable costs;
  std::mutex mutex = {};
  std::vector<SimulatedCall> log = {};  // guarded by the mutex
};

// `here` connects the ranks that exist; null if there is one.
class Simulation::Engine : public CommEngine {
 public:
  struct Ranks {
    EvenGroup group;
    int first = 0;               // the rank in the world of rank 0 of the group
    std::vector<int> here = {};  // the ranks of the group that exist, ascending
  };

  Engine(int rank, Ranks ranks, std::shared_ptr<State> state, std::shared_ptr<VirtualClock> clock,
         std::unique_ptr<CommEngine> here)
      : CommEngine(rank, ranks.group.ranks),
        ranks_(std::move(ranks)),
        state_(std::move(state)),
        clock_(std::move(clock)),
        here_(std::move(here)) {}

  std::string_view name() const override { return "simulation"; }
  std::shared_ptr<VirtualClock> clock() const override { return clock_; }
  bool takes_meta() const override { return !costs().groups.empty(); }

  // An engine runs one call at a time, so the next one frees it.
  std::shared_ptr<void> scratch_on_meta(const Tensor& send) override {
    if (!costs().scatter_takes_copy || send.device().type != DeviceType::meta) return nullptr;
    if (const auto last = scratch_.lock()) *last = Tensor();
    const auto copy =
        std::make_shared<Tensor>(Tensor::empty(send.shape(), send.dtype(), send.device()));
    scratch_ = copy;
    return copy;
  }

  void all_reduce(Tensor& t, ReduceOp op) override {
    if (is_shared(t)) here().all_reduce(t, op);
    spend("all_reduce", t.bytes());
  }
  void broadcast(Tensor& t, int root) override {
    if (is_shared(t) && index_here(root) >= 0) here().broadcast(t, index_here(root));
    spend("broadcast", t.bytes());
  }
  void all_gather(const Tensor& send, Tensor& receive) override {
    Tensor parts;
    if (is_shared(send)) {
      parts = Tensor::empty({std::ssize(ranks_.here) * send.numel()}, send.dtype());
      here().all_gather(send, parts);
    }
    repeat(send, receive, size());
    for (int64_t i = 0; parts && i < std::ssize(ranks_.here); ++i)
      copy_into(receive, ranks_.here[static_cast<size_t>(i)] * send.bytes(), parts,
                i * send.bytes(), send.bytes());
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
    if (rank() == root) repeat(send, receive, size());
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
  void barrier() override { spend("all_reduce", sizeof(double)); }

  // The message follows its arrival. The latency of one message overlaps the next.
  void send(const Tensor& t, int peer, int tag) override {
    const int to = peer_here(peer);
    const auto bytes = static_cast<double>(t.bytes());
    const char* const kind = on_same_node(peer) ? "send" : "send_between";
    const double whole = costs().seconds(kind, bytes, ranks_.group);
    const double latency = costs().seconds(kind, 0, ranks_.group);
    free_at_ = clock_->reserve_link(std::max(time_of_call(), free_at_), whole - latency);
    const double arrival = free_at_ + whole;
    here().send(Tensor::full({1}, arrival, Dtype::f64), to, tag);
    if (is_shared(t)) here().send(t, to, tag);
    complete(arrival, bytes);
  }
  void receive(Tensor& t, int peer, int tag) override {
    const int from = peer_here(peer);
    Tensor arrival = Tensor::empty({1}, Dtype::f64);
    here().receive(arrival, from, tag);
    if (is_shared(t)) here().receive(t, from, tag);
    complete(arrival.item(), static_cast<double>(t.bytes()));
  }

  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override {
    Ranks ranks{group_of(members), in_world(members[0])};
    std::vector<int> both;  // of those here, the members
    for (int i = 0; i < std::ssize(members); ++i) {
      const int at = index_here(members[static_cast<size_t>(i)]);
      if (at < 0) continue;
      ranks.here.push_back(i);
      both.push_back(at);
    }
    std::unique_ptr<CommEngine> together;
    const auto me = std::ranges::find(ranks.here, index) - ranks.here.begin();
    if (both.size() > 1) together = here_->split(both, static_cast<int>(me), id);
    return std::make_unique<Engine>(index, std::move(ranks), state_, clock_, std::move(together));
  }

  void abort(std::string_view why) noexcept override {
    if (here_) here_->abort(why);
  }

 private:
  const CostTable& costs() const { return state_->costs; }

  CommEngine& here() {
    here_->set_call("simulate", start_of_call(), timeout());
    return *here_;
  }
  // Returns -1 if the rank does not exist.
  int index_here(int rank) const {
    const auto found = std::ranges::find(ranks_.here, rank);
    return found == ranks_.here.end() ? -1 : static_cast<int>(found - ranks_.here.begin());
  }
  int peer_here(int peer) const {
    if (const int at = index_here(peer); at >= 0) return at;
    throw EngineError(peer, "in a simulation without it this rank neither sends nor receives");
  }
  int in_world(int rank) const { return ranks_.first + rank * ranks_.group.stride; }
  bool on_same_node(int peer) const {
    const int each = costs().devices_per_node;
    return each == 0 || in_world(rank()) / each == in_world(peer) / each;
  }
  // Returns true if other ranks that exist exchange values of `t` with this one.
  bool is_shared(const Tensor& t) const { return here_ && t.device().type != DeviceType::meta; }

  EvenGroup group_of(const std::vector<int>& members) const {
    const int ranks = static_cast<int>(members.size());
    const int stride = ranks > 1 ? members[1] - members[0] : 1;
    for (int i = 1; i < ranks; ++i)
      HM_REQUIRE(stride > 0 && members[i] - members[i - 1] == stride,
                 "[simulation] ranks of a group are evenly spaced");
    return {ranks, stride * ranks_.group.stride};
  }

  double time_of_call() const { return queued() ? queued()->at : clock_->now(); }

  // All ranks that exist begin together.
  void spend(const char* kind, int64_t bytes) {
    Tensor begin = Tensor::full({1}, time_of_call(), Dtype::f64);
    if (here_) here().all_reduce(begin, ReduceOp::max);
    const auto amount = static_cast<double>(bytes);
    free_at_ = std::max(begin.item(), free_at_) + costs().seconds(kind, amount, ranks_.group);
    complete(free_at_, amount);
    const std::lock_guard lock(state_->mutex);
    state_->log.push_back({kind, amount, ranks_.group});
  }

  void complete(double end, double bytes) {
    const double core = costs().core_s_per_call + costs().core_s_per_byte * bytes;
    if (queued()) {
      queued()->core = core;
      queued()->end = end;
    } else {
      clock_->charge(core);
      clock_->wait_until(end);
    }
  }

  const Ranks ranks_;
  const std::shared_ptr<State> state_;
  const std::shared_ptr<VirtualClock> clock_;
  const std::unique_ptr<CommEngine> here_;
  double free_at_ = 0;  // on the clock
  std::weak_ptr<Tensor> scratch_;
};

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

Simulation::Simulation(CostTable costs) : state_(new State{.costs = std::move(costs)}) {}
Simulation::~Simulation() = default;

const CostTable& Simulation::costs() const { return state_->costs; }

std::unique_ptr<Comm> Simulation::join(int rank, std::shared_ptr<VirtualClock> clock) const {
  if (!clock) clock = std::make_shared<VirtualClock>();
  return std::move(join(std::vector{rank}, {std::move(clock)}).front());
}

std::vector<std::unique_ptr<Comm>> Simulation::join(
    const std::vector<int>& ranks, const std::vector<std::shared_ptr<VirtualClock>>& clocks) const {
  HM_REQUIRE(ranks.size() == clocks.size(), "[simulation] {} ranks have {} clocks", ranks.size(),
             clocks.size());
  std::vector<std::unique_ptr<CommEngine>> here(1);
  if (ranks.size() > 1) here = comms::local_group(static_cast<int>(ranks.size()), false);
  std::vector<std::unique_ptr<Comm>> joined;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Engine::Ranks all{{costs().world, 1}, 0, ranks};
    joined.push_back(std::make_unique<Comm>(
        std::make_unique<Engine>(ranks[i], all, state_, clocks[i], std::move(here[i]))));
    joined.back()->set_timeout(kSimulationTimeout);
  }
  return joined;
}

std::vector<SimulatedCall> Simulation::take_log() const {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->log, {});
}

}  // namespace howmany
