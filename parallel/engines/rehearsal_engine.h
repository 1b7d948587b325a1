// SPDX-License-Identifier: Apache-2.0
// The engines of a rehearsal (parallel/comm/rehearsal.h).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "parallel/comm/engine.h"
#include "parallel/comm/rehearsal.h"

namespace howmany {

struct RehearsalState {
  struct Entry {
    RehearsedCall call;
    std::shared_ptr<const CommEngine::Queued> queued;  // null if the call was blocking
  };
  const CostTable costs;
  std::mutex mutex;
  std::vector<Entry> log;  // guarded by the mutex
};

namespace comms {

// A rank of which no other rank runs here.
class Rehearsed : public CommEngine {
 public:
  Rehearsed(int rank, EvenGroup group, std::shared_ptr<RehearsalState> state)
      : CommEngine(rank, group.ranks), group_(group), state_(std::move(state)) {}

  std::string_view name() const override { return "rehearsal"; }
  std::shared_ptr<void> scratch_on_meta(const Tensor& send) override;

  void all_reduce(Tensor& t, ReduceOp op) override;
  void broadcast(Tensor& t, int root) override;
  void all_gather(const Tensor& send, Tensor& receive) override;
  void reduce_scatter(const Tensor& send, Tensor& receive, ReduceOp op) override;
  void reduce(const Tensor& send, Tensor& receive, int root, ReduceOp op) override;
  void gather(const Tensor& send, Tensor& receive, int root) override;
  void scatter(const Tensor& send, Tensor& receive, int root) override;
  void all_to_all(const Tensor& send, Tensor& receive) override;
  void send(const Tensor& t, int peer, int tag) override;
  void receive(Tensor& t, int peer, int tag) override;
  void barrier() override;
  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override;
  void abort(std::string_view why) noexcept override;

 protected:
  // Lets the time of the call pass.
  virtual void spend(const char* kind, int64_t bytes);

  EvenGroup group() const { return group_; }
  EvenGroup group_of(const std::vector<int>& members) const;
  const std::shared_ptr<RehearsalState>& state() const { return state_; }
  const CostTable& costs() const { return state_->costs; }
  double core_seconds(double bytes) const;

 private:
  const EvenGroup group_;
  const std::shared_ptr<RehearsalState> state_;
  Clock::time_point free_at_ = {};
  std::weak_ptr<Tensor> scratch_;
};

// A rank, some others of which run here in turns with it. `here` connects these.
class InTurns : public Rehearsed {
 public:
  struct Ranks {
    EvenGroup group;
    int first = 0;               // the rank in the world of rank 0 of the group
    std::vector<int> here = {};  // the ranks of the group that run here, ascending
  };
  InTurns(int rank, Ranks ranks, std::shared_ptr<RehearsalState> state, std::shared_ptr<Turn> turn,
          std::unique_ptr<CommEngine> here);

  std::shared_ptr<Turn> turn() const override { return turn_; }
  bool takes_meta() const override { return true; }
  void all_reduce(Tensor& t, ReduceOp op) override;
  void broadcast(Tensor& t, int root) override;
  void all_gather(const Tensor& send, Tensor& receive) override;
  void send(const Tensor& t, int peer, int tag) override;
  void receive(Tensor& t, int peer, int tag) override;
  std::unique_ptr<CommEngine> split(const std::vector<int>& members, int index,
                                    const std::string& id) override;
  void abort(std::string_view why) noexcept override;

 protected:
  void spend(const char* kind, int64_t bytes) override;

 private:
  template <typename Body>
  void apart(const Body& body);
  double time_of_call() const;
  void complete(double end, double bytes);
  bool on_same_node(int peer) const;
  CommEngine& here();
  bool alone() const { return ranks_.here.size() < 2; }
  // Returns true if other ranks here exchange values of `t` with this one.
  bool is_shared(const Tensor& t) const { return !alone() && t.device().type != DeviceType::meta; }
  int index_here(int rank) const;  // -1: it does not run here
  int in_world(int rank) const { return ranks_.first + rank * ranks_.group.stride; }

  const Ranks ranks_;
  const std::shared_ptr<Turn> turn_;
  const std::unique_ptr<CommEngine> here_;
  double free_at_ = 0;  // on the clock
};

}  // namespace comms
}  // namespace howmany
