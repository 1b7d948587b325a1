// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/steps.h"

#include <algorithm>
#include <cmath>

#include "benches/common/peak_memory.h"
#include "benches/common/trainer.h"
#include "benches/common/verify.h"
#include "benches/speedup/step_tally.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/gpu/gpu.h"

namespace howmany::benches {
namespace {

// Reduces over ranks: the mean bubble, the longest exposed communication.
StepReport over_ranks(Comm& comm, const StepTally& tally) {
  Tensor bubble = Tensor::full({1}, tally.typical(&StepReport::bubble), Dtype::f64);
  Tensor exposed =
      Tensor::full({1}, tally.typical(&StepReport::exposed_communication_seconds), Dtype::f64);
  comm.all_reduce(bubble);
  comm.all_reduce(exposed, ReduceOp::max);
  return {.bubble = bubble.item() / comm.size(),
          .theoretical_bubble = tally.last().theoretical_bubble,
          .exposed_communication_seconds = exposed.item()};
}

// Choosing algorithms and the check take more memory than the steps. The pool would keep it from
// other processes on the GPU.
void release_cached(const std::vector<Device>& devices) {
  for (const Device& device : devices)
    if (device.type == DeviceType::cuda) gpu::release_cached_memory(device.index);
}

std::vector<Device> devices_of_process(const Workload& work, int rank) {
  return work.over_processes() ? work.devices_of(rank) : work.devices;
}

double largest(Comm& comm, double of_rank) {
  const Tensor most = Tensor::full({1}, of_rank, Dtype::f64);
  comm.all_reduce(most, ReduceOp::max);
  return most.item();
}

// `device` is the rank's first device, the GPU on which its step ends.
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
  StepTimes result;
  result.first_step_seconds = verify_first_step(work, data, trainer, comm, device);
  StepTally tally;
  const std::vector<Device> mine = devices_of_process(work, comm.rank());
  release_cached(mine);
  reset_peak_memory(mine);
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
  result.straggler = find_straggler(comm, tally.own());
  result.report = over_ranks(comm, tally);
  result.peak_bytes = largest(comm, peak_bytes_of_one(mine, data.held_bytes()));
  result.wait_fraction = tally.wait_fraction();
  result.flop = trainer.step_flop(work.global_batch);
  if (!std::isfinite(result.loss))
    throw WrongData(
        fmt::format("the loss is {} after {} steps: lower --lr", result.loss, tally.size()));
  if (!profile.file.empty())
    result.profile = profile_steps(
        comm, quantile(result.samples.seconds, 0.5), [&] { trainer.train(trainer.next()).value(); },
        profile);
  return result;
}

}  // namespace howmany::benches
