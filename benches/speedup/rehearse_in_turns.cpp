// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "benches/common/computed_step.h"
#include "benches/common/trainer.h"
#include "benches/speedup/rehearse.h"
#include "core/tensor/precision.h"
#include "parallel/comm/hang_timeout.h"
#include "parallel/comm/turns.h"
#include "parallel/sync/primitives.h"

namespace howmany::benches {
namespace {

// The ranks of one replica: one for each stage.
class Replica {
 public:
  Replica(const Workload& work, const Rehearsal& rehearsal, const Dataset& data,
          const std::vector<Device>& here)
      : ranks_(ranks_of_a_replica(work)),
        devices_(devices_of(ranks_.size(), here)),
        threads_(devices_) {
    std::vector<std::shared_ptr<std::mutex>> held;
    for (size_t i = 0; i < here.size(); ++i) held.push_back(std::make_shared<std::mutex>());
    for (size_t i = 0; i < ranks_.size(); ++i)
      turns_.push_back(std::make_shared<Turn>(held[i % here.size()]));
    comms_ = rehearsal.join_in_turns(ranks_, turns_);
    trainers_.resize(ranks_.size());
    each_in_turn([&](size_t i) {
      trainers_[i] = std::make_unique<Trainer>(work, data, *comms_[i], devices_[i]);
    });
  }

  // Returns the seconds of the step.
  double step() {
    each_in_turn([&](size_t i) {
      Trainer& trainer = *trainers_[i];
      trainer.train(trainer.next()).value();
    });
    const double end = std::ranges::max(ends_), whole = end - start_;
    double idle = 0;
    for (size_t i = 0; i < ends_.size(); ++i) idle += turns_[i]->waited() + end - ends_[i];
    bubbles_.push_back(idle / whole / static_cast<double>(ends_.size()));
    return whole;
  }

  const std::vector<double>& bubbles() const { return bubbles_; }
  StepReport report() const { return trainers_[0]->mode().report(); }

 private:
  static std::vector<Device> devices_of(size_t ranks, const std::vector<Device>& here) {
    std::vector<Device> all;
    while (all.size() < ranks) all.push_back(here[all.size() % here.size()]);
    return all;
  }

  template <typename Body>
  void each_in_turn(const Body& body) {
    start_ = ends_.empty() ? 0 : std::ranges::max(ends_);
    ends_.assign(ranks_.size(), 0);
    threads_(static_cast<int>(ranks_.size()), [&](int rank) {
      const auto i = static_cast<size_t>(rank);
      const Turn::Hold hold(*turns_[i], start_);
      try {
        body(i);
      } catch (const std::exception& e) {
        comms_[i]->abort(e.what());
        throw;
      }
      ends_[i] = turns_[i]->now();
    });
  }

  const std::vector<int> ranks_;
  const std::vector<Device> devices_;  // of the ranks
  ParallelApply threads_;
  std::vector<std::shared_ptr<Turn>> turns_;
  std::vector<std::unique_ptr<Comm>> comms_;
  std::vector<std::unique_ptr<Trainer>> trainers_;
  double start_ = 0;  // of the step, on all clocks
  std::vector<double> ends_, bubbles_;
};

}  // namespace

RehearsedSteps rehearse_in_turns(const Workload& work, const CostTable& costs,
                                 const TimingOptions& timing, const Dataset& data,
                                 const std::vector<Device>& here) {
  const KernelScope kernels(work.kernels);
  const PrecisionScope precision(work.precision);
  set_hang_timeout(kTurnsTimeout);  // a rank waits for the work of all others
  const Rehearsal rehearsal(costs);
  Replica replica(work, rehearsal, data, here);
  RehearsedSteps result;
  result.samples = sample(timing, [&] { return replica.step(); });
  std::vector<double> bubbles = replica.bubbles();
  bubbles.erase(bubbles.begin(), bubbles.begin() + timing.warmup_iterations);
  result.bubble = quantile(bubbles, 0.5);
  result.theoretical_bubble = replica.report().theoretical_bubble;
  return result;
}

}  // namespace howmany::benches
