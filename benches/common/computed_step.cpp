// SPDX-License-Identifier: Apache-2.0
#include "benches/common/computed_step.h"

#include <algorithm>
#include <memory>

#include "benches/common/meta_batch.h"
#include "core/base/error.h"
#include "core/base/text/options.h"
#include "core/ops/flop_observer.h"
#include "core/tensor/precision.h"
#include "parallel/comm/hang_timeout.h"
#include "parallel/comm/virtual_clock.h"
#include "parallel/sync/primitives.h"

namespace howmany::benches {
namespace {

// A step of more accumulated micro-batches is computed from steps of this many and of one fewer:
// all but the first and the last take equal times.
constexpr int64_t kFewMicroBatches = 4;

std::unique_ptr<Mode> mode_on(const Workload& work, Comm* comm, Device device,
                              double flop_per_byte) {
  return make_mode(work.mode, {.model = make_model(work.model),
                               .comm = comm,
                               .devices = {device},
                               .flop_per_byte = flop_per_byte > 0 ? flop_per_byte : kCpuFlopPerByte,
                               .sync = work.sync});
}

// The ranks of one replica, each with a clock and a device of its own.
class ComputedReplica {
 public:
  ComputedReplica(const Workload& work, const CostTable& costs, const OperationSeconds& seconds)
      : work_(work),
        seconds_(seconds),
        simulation_(costs),
        ranks_(ranks_of_a_replica(work)),
        devices_(meta_devices(0, static_cast<int>(ranks_.size()))),
        threads_(devices_) {
    for (size_t i = 0; i < ranks_.size(); ++i) clocks_.push_back(std::make_shared<VirtualClock>());
    comms_ = simulation_.join(ranks_, clocks_);
    modes_.resize(ranks_.size());
    each([&](size_t i) {
      modes_[i] = mode_on(work_, comms_[i].get(), devices_[i], costs.flop_per_byte);
    });
  }

  // Returns the seconds of the step.
  double step() {
    const double start = end_;
    each([&](size_t i) {
      modes_[i]
          ->step(meta_batch(make_model(work_.model), work_.global_batch, modes_[i]->share(),
                            devices_[i]))
          .value();
      for (Param* p : modes_[i]->params()) p->value.mutable_raw();  // as an optimizer does
    });
    return end_ - start;
  }

 private:
  template <typename Body>
  void each(const Body& body) {
    const double start = end_;
    std::vector<double> ends(ranks_.size());
    threads_(static_cast<int>(ranks_.size()), [&](int rank) {
      const auto i = static_cast<size_t>(rank);
      clocks_[i]->restart(start);
      const FlopObserver work([&](double flop, double operations) {
        clocks_[i]->charge(operations * seconds_.fixed + flop * seconds_.per_flop);
      });
      try {
        body(i);
      } catch (const std::exception& e) {
        comms_[i]->abort(e.what());
        throw;
      }
      ends[i] = clocks_[i]->now();
    });
    end_ = std::ranges::max(ends);
  }

  const Workload& work_;
  const OperationSeconds seconds_;
  const Simulation simulation_;
  const std::vector<int> ranks_;
  const std::vector<Device> devices_;
  ParallelApply threads_;
  std::vector<std::shared_ptr<VirtualClock>> clocks_;
  std::vector<std::unique_ptr<Comm>> comms_;
  std::vector<std::unique_ptr<Mode>> modes_;
  double end_ = 0;  // of the last step, on all clocks
};

double seconds_of_step(const Workload& work, const CostTable& costs,
                       const OperationSeconds& seconds) {
  ComputedReplica replica(work, costs, seconds);
  replica.step();  // the first one allocates
  return replica.step();
}

double seconds_alone(const std::string& mode, Workload work, int64_t rows,
                     const OperationSeconds& seconds) {
  work.mode = mode;
  const Device device{DeviceType::meta, 0};
  const auto alone = mode_on(work, nullptr, device, 0);
  double sum = 0;
  const FlopObserver clock([&](double flop, double operations) {
    sum += operations * seconds.fixed + flop * seconds.per_flop;
  });
  std::ignore = alone->step(meta_batch(make_model(work.model), rows, {}, device));
  return sum;
}

// How many times as long as `count` micro-batches a step of one device takes that adds their
// gradients. The known time of a micro-batch has that already.
double adding(const Workload& work, int64_t count, const OperationSeconds& seconds) {
  if (count == 1) return 1;
  const int64_t rows = work.global_batch / work.count() / count;
  return seconds_alone("single:accumulate=" + std::to_string(count), work, rows * count, seconds) /
         (static_cast<double>(count) * seconds_alone("single", work, rows, seconds));
}

// The same with `to` micro-batches instead of `from`.
Workload with_micro_batches(Workload work, int64_t from, int64_t to) {
  NamedOptions mode = parse_named("mode", work.mode);
  mode.options["accumulate"] = std::to_string(to);
  work.mode = text_of(mode);
  work.global_batch = work.global_batch / from * to;
  return work;
}

int64_t accumulated(const Workload& work) {
  const Options options = parse_named("mode", work.mode).options;
  const auto found = options.find("accumulate");
  return found == options.end() ? 1 : parse_positive("mode", found->first, found->second);
}

}  // namespace

std::vector<int> ranks_of_a_replica(const Workload& work) {
  const int stages = stages_of(work.mode, work.count());
  std::vector<int> ranks(static_cast<size_t>(stages));
  for (int stage = 0; stage < stages; ++stage)
    ranks[static_cast<size_t>(stage)] = stage * (work.count() / stages);
  return ranks;
}

StepWork step_work(const Workload& work, int64_t rows) {
  const PrecisionScope precision(work.precision);
  const Device device{DeviceType::meta, 0};
  Workload alone = work;
  alone.mode = "single";
  const auto mode = mode_on(alone, nullptr, device, 0);
  const Batch batch = meta_batch(make_model(work.model), rows, {}, device);
  StepWork step;
  const FlopObserver count([&](double flop, double operations) {
    step.flop += flop;
    step.operations += operations;
  });
  std::ignore = mode->step(batch);
  return step;
}

OperationSeconds operation_seconds(const StepWork& step, double seconds, double fixed) {
  return {(seconds - fixed) / step.flop, fixed / step.operations};
}

double computed_step_seconds(const Workload& work, const CostTable& costs,
                             const OperationSeconds& seconds) {
  const ModeTraits traits = mode_traits(work.mode);
  HM_REQUIRE(traits.over_ranks && !traits.over_devices,
             "{} has no rank with one device: its step is not computed", work.mode);
  const PrecisionScope precision(work.precision);
  set_hang_timeout(kSimulationTimeout);  // a rank waits for the work of all others
  const int64_t many = accumulated(work);
  if (many <= kFewMicroBatches || work.global_batch % (many * work.count()) != 0)
    return seconds_of_step(work, costs, seconds) / adding(work, many, seconds);
  const auto of = [&](int64_t micro_batches) {
    const Workload some = with_micro_batches(work, many, micro_batches);
    return seconds_of_step(some, costs, seconds) / adding(some, micro_batches, seconds);
  };
  const double few = of(kFewMicroBatches), fewer = of(kFewMicroBatches - 1);
  return few + static_cast<double>(many - kFewMicroBatches) * (few - fewer);
}

}  // namespace howmany::benches
