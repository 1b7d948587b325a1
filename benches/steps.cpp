#include "benches/steps.h"

#include <algorithm>
#include <cmath>

#include "benches/verify.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/storage.h"

namespace howmany::benches {
namespace {

// The mean of the ranks' bubbles, the longest exposed communication, of `steps` steps.
StepReport over_ranks(Comm& comm, StepReport sum, int64_t steps) {
  Tensor bubble = Tensor::full({1}, sum.bubble / static_cast<double>(steps), Dtype::f64);
  Tensor exposed =
      Tensor::full({1}, sum.exposed_communication_seconds / static_cast<double>(steps), Dtype::f64);
  comm.all_reduce(bubble);
  comm.all_reduce(exposed, ReduceOp::max);
  sum.bubble = bubble.item() / comm.size();
  sum.exposed_communication_seconds = exposed.item();
  return sum;
}

void add(StepReport& sum, const StepReport& step) {
  sum.bubble += step.bubble;
  sum.theoretical_bubble = step.theoretical_bubble;
  sum.exposed_communication_seconds += step.exposed_communication_seconds;
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
  double waited = 0;
  int64_t steps = 0;
  std::vector<double> own;
  reset_peak_memory();
  StepLoss last;
  result.samples = time_steps(work, comm, timing, device, [&] {
    const Clock::time_point start = Clock::now();
    const Batch batch = trainer.next();
    waited += seconds_since(start);
    StepLoss next = trainer.train(batch);
    last.value();
    last = std::move(next);
    add(result.report, trainer.mode().report());
    own.push_back(seconds_since(start) - trainer.mode().report().waited_seconds);
    ++steps;
  });
  result.loss = last.value();
  result.straggler = find_straggler(comm, own);
  result.report = over_ranks(comm, result.report, steps);
  result.peak_bytes = peak_bytes_per_device(comm, work);
  const double median = quantile(result.samples.seconds, 0.5);
  result.wait_fraction = waited / static_cast<double>(steps) / median;
  result.flop = 3 * trainer.forward_flop(work.global_batch);
  if (!std::isfinite(result.loss))
    throw WrongData(fmt::format("the loss is {} after {} steps: lower --lr", result.loss, steps));
  if (!profile.file.empty())
    result.profile = profile_steps(
        comm, median, [&] { trainer.train(trainer.next()).value(); }, profile);
  return result;
}

}  // namespace howmany::benches
