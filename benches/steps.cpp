#include "benches/steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "benches/verify.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/storage.h"

namespace howmany::benches {
namespace {

// Of this rank's steps.
struct Tally {
  std::vector<double> seconds, waited, own;
  std::vector<StepReport> reports;

  void add(double whole, double for_batch, const StepReport& report) {
    seconds.push_back(whole);
    waited.push_back(for_batch);
    own.push_back(whole - report.waited_seconds);
    reports.push_back(report);
  }
  void forget_first(int steps) {
    for (std::vector<double>* values : {&seconds, &waited, &own})
      values->erase(values->begin(), values->begin() + steps);
    reports.erase(reports.begin(), reports.begin() + steps);
  }
  double wait_fraction() const {
    return std::accumulate(waited.begin(), waited.end(), 0.0) /
           std::accumulate(seconds.begin(), seconds.end(), 0.0);
  }
  double typical(double StepReport::*what) const {
    std::vector<double> values;
    for (const StepReport& report : reports) values.push_back(report.*what);
    return quantile(std::move(values), 0.5);
  }
};

// Medians, as a step's own time is one: the mean of the ranks' bubbles, the longest exposed
// communication.
StepReport over_ranks(Comm& comm, const Tally& tally) {
  Tensor bubble = Tensor::full({1}, tally.typical(&StepReport::bubble), Dtype::f64);
  Tensor exposed =
      Tensor::full({1}, tally.typical(&StepReport::exposed_communication_seconds), Dtype::f64);
  comm.all_reduce(bubble);
  comm.all_reduce(exposed, ReduceOp::max);
  return {.bubble = bubble.item() / comm.size(),
          .theoretical_bubble = tally.reports.back().theoretical_bubble,
          .exposed_communication_seconds = exposed.item()};
}

// Of tensors, a device's share of what its process held at once; the largest over the ranks.
double peak_bytes_per_device(Comm& comm, const Workload& work) {
  const bool shared = !work.over_processes();
  const double devices = shared ? work.count() : work.count() / work.ranks();
  Tensor most = Tensor::full({1}, static_cast<double>(memory_use().peak) / devices, Dtype::f64);
  comm.all_reduce(most, ReduceOp::max);
  return most.item();
}

// Of a rank's devices the first is the GPU on which its step ends.
Samples time_steps(const Workload& work, Comm& comm, const TimingOptions& timing, Device device,
                   const std::function<void()>& step) {
  const bool gpus =
      std::ranges::all_of(work.devices, [](const Device& d) { return d.type == DeviceType::cuda; });
  if (gpus) return time_on_gpu(comm, timing, device.index, step);
  return time_iterations(comm, timing, step);
}

}  // namespace

StepTimes measure_steps(const Workload& work, const TimingOptions& timing, const Dataset& data,
                        Comm& comm, Device device, const ProfileOptions& profile) {
  Trainer trainer(work, data, comm, device);
  verify_first_step(work, data, trainer, comm, device);
  StepTimes result;
  Tally tally;
  reset_peak_memory();
  StepLoss last;
  result.samples = time_steps(work, comm, timing, device, [&] {
    const Clock::time_point start = Clock::now();
    const Batch batch = trainer.next();
    const double waited = seconds_since(start);
    StepLoss next = trainer.train(batch);
    last.value();
    last = std::move(next);
    tally.add(seconds_since(start), waited, trainer.mode().report());
  });
  tally.forget_first(timing.warmup_iterations);
  result.loss = last.value();
  result.straggler = find_straggler(comm, tally.own);
  result.report = over_ranks(comm, tally);
  result.peak_bytes = peak_bytes_per_device(comm, work);
  result.wait_fraction = tally.wait_fraction();
  result.flop = 3 * trainer.forward_flop(work.global_batch);
  if (!std::isfinite(result.loss))
    throw WrongData(fmt::format("the loss is {} after {} steps: lower --lr", result.loss,
                                tally.seconds.size()));
  if (!profile.file.empty())
    result.profile = profile_steps(
        comm, quantile(result.samples.seconds, 0.5), [&] { trainer.train(trainer.next()).value(); },
        profile);
  return result;
}

}  // namespace howmany::benches
