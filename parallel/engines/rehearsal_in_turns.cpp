// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/host/copy.h"
#include "parallel/engines/rehearsal_engine.h"

namespace howmany::comms {

InTurns::InTurns(int rank, Ranks ranks, std::shared_ptr<RehearsalState> state,
                 std::shared_ptr<Turn> turn, std::unique_ptr<CommEngine> here)
    : Rehearsed(rank, ranks.group, std::move(state)),
      ranks_(std::move(ranks)),
      turn_(std::move(turn)),
      here_(std::move(here)) {}

CommEngine& InTurns::here() {
  here_->set_call("rehearse", start_of_call(), timeout());
  return *here_;
}

int InTurns::index_here(int rank) const {
  const auto found = std::ranges::find(ranks_.here, rank);
  return found == ranks_.here.end() ? -1 : static_cast<int>(found - ranks_.here.begin());
}

// Runs body() while other ranks can have the device. A queued call runs on a thread that does not
// hold it.
template <typename Body>
void InTurns::apart(const Body& body) {
  const Turn::Pause pause(queued() ? nullptr : turn_.get());
  body();
}

double InTurns::time_of_call() const { return queued() ? turn_->at(queued()->at) : turn_->now(); }

void InTurns::complete(double end, double bytes) {
  turn_->lose(core_seconds(bytes));
  if (queued()) {
    queued()->end = end;
  } else {
    Turn::Pause pause(turn_.get());
    pause.until(end);
  }
}

// All ranks here begin together.
void InTurns::spend(const char* kind, int64_t bytes) {
  const Tensor begin = Tensor::full({1}, time_of_call(), Dtype::f64);
  if (!alone())
    apart([&] {
      Tensor latest = begin;
      here().all_reduce(latest, ReduceOp::max);
    });
  const auto amount = static_cast<double>(bytes);
  free_at_ = std::max(begin.item(), free_at_) + costs().seconds(kind, amount, group());
  complete(free_at_, amount);
}

void InTurns::all_reduce(Tensor& t, ReduceOp op) {
  if (is_shared(t)) apart([&] { here().all_reduce(t, op); });
  Rehearsed::all_reduce(t, op);
}

void InTurns::broadcast(Tensor& t, int root) {
  if (is_shared(t) && index_here(root) >= 0) apart([&] { here().broadcast(t, index_here(root)); });
  Rehearsed::broadcast(t, root);
}

void InTurns::all_gather(const Tensor& send, Tensor& receive) {
  if (!is_shared(send)) return Rehearsed::all_gather(send, receive);
  Tensor parts = Tensor::empty({std::ssize(ranks_.here) * send.numel()}, send.dtype());
  apart([&] { here().all_gather(send, parts); });
  Rehearsed::all_gather(send, receive);
  for (int64_t i = 0; i < std::ssize(ranks_.here); ++i)
    copy_host(static_cast<char*>(receive.mutable_raw()) +
                  ranks_.here[static_cast<size_t>(i)] * send.bytes(),
              static_cast<const char*>(parts.raw()) + i * send.bytes(),
              static_cast<size_t>(send.bytes()));
}

// The message follows its arrival. The latency of one message overlaps the next.
void InTurns::send(const Tensor& t, int peer, int tag) {
  const int to = index_here(peer);
  if (to < 0) return Rehearsed::send(t, peer, tag);
  const auto bytes = static_cast<double>(t.bytes());
  const char* const kind = on_same_node(peer) ? "send" : "send_between";
  const double whole = costs().seconds(kind, bytes, group());
  const double latency = costs().seconds(kind, 0, group());
  free_at_ = turn_->reserve_link(std::max(time_of_call(), free_at_), whole - latency);
  const double arrival = free_at_ + whole;
  apart([&] {
    here().send(Tensor::full({1}, arrival, Dtype::f64), to, tag);
    if (is_shared(t)) here().send(t, to, tag);
  });
  complete(arrival, bytes);
}

void InTurns::receive(Tensor& t, int peer, int tag) {
  const int from = index_here(peer);
  if (from < 0) return Rehearsed::receive(t, peer, tag);
  Tensor arrival = Tensor::empty({1}, Dtype::f64);
  apart([&] {
    here().receive(arrival, from, tag);
    if (is_shared(t)) here().receive(t, from, tag);
  });
  complete(arrival.item(), static_cast<double>(t.bytes()));
}

bool InTurns::on_same_node(int peer) const {
  const int each = costs().devices_per_node;
  return each == 0 || in_world(rank()) / each == in_world(peer) / each;
}

std::unique_ptr<CommEngine> InTurns::split(const std::vector<int>& members, int index,
                                           const std::string& id) {
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
  return std::make_unique<InTurns>(index, std::move(ranks), state(), turn_, std::move(together));
}

void InTurns::abort(std::string_view why) noexcept {
  if (here_) here_->abort(why);
}

}  // namespace howmany::comms
