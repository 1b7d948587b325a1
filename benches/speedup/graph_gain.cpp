// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/graph_gain.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "benches/common/report.h"
#include "benches/common/timing.h"
#include "benches/common/trainer.h"
#include "benches/common/verify.h"
#include "core/base/error.h"
#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "parallel/launch/launch.h"

namespace howmany::benches {
namespace {

Trainer verified(Workload& work, const std::string& mode, const Dataset& data, Comm& alone) {
  work.mode = mode;
  Trainer trainer(work, data, alone, work.devices[0]);
  verify_first_step(work, data, trainer, alone, work.devices[0]);
  return trainer;
}

// The host submits as far ahead as it can, so a step takes the time of the slower of host and GPU.
double seconds_of(Trainer& trainer, int gpu, int steps) {
  trainer.train(trainer.next());
  const gpu::TimedEvent begin(gpu);
  for (int i = 0; i < steps; ++i) trainer.train(trainer.next());
  return gpu::TimedEvent(gpu).seconds_since(begin) / steps;
}

void run(benchmark::State& state, const Workload& work) try {
  GraphGain found;
  const DatasetPtr data = open_dataset(work);
  launch_threads(1, [&](Comm& alone) {
    const DeviceScope on(work.devices[0]);
    const KernelScope kernels(work.kernels);
    const PrecisionScope precision(work.precision);
    found = measure_graph_gain(work, *data, alone, {});
  });
  report(state, {.seconds = found.captured},
         {{"gain", found.gain},
          {"gain_low", found.interval.low},
          {"gain_high", found.interval.high},
          {"plain_median_s", quantile(found.plain, 0.5)},
          {"captured_median_s", quantile(found.captured, 0.5)}});
  state.SetLabel(fmt::format("{:.3f} times as fast ({:.3f} to {:.3f})", found.gain,
                             found.interval.low, found.interval.high));
} catch (const std::exception& e) {
  report_failure(state, e);
}

}  // namespace

GraphGain measure_graph_gain(Workload work, const Dataset& data, Comm& alone,
                             const GraphGainOptions& options) {
  HM_REQUIRE(work.count() == 1 && work.devices[0].type == DeviceType::cuda,
             "[graph_gain] one GPU is wanted");
  const int gpu = work.devices[0].index;
  Trainer plain = verified(work, "single:graph=off", data, alone);
  Trainer captured = verified(work, "single:graph=on", data, alone);
  Turns all = in_turn(
      options.rounds, [&] { return seconds_of(captured, gpu, options.together); },
      [&] { return seconds_of(plain, gpu, options.together); });
  GraphGain found;
  found.captured = std::move(all.ours);
  found.plain = std::move(all.theirs);
  std::vector<double> gains;
  std::ranges::transform(found.plain, found.captured, std::back_inserter(gains), std::divides());
  found.gain = quantile(gains, 0.5);
  found.interval = median_bounds(gains);
  return found;
}

void register_graph_gain(const Workload& work) {
  std::string name = fmt::format("speedup/graph_gain/{}/batch:{}", work.model, work.global_batch);
  if (work.precision != Precision::f32)
    name += fmt::format("/precision:{}", name_of(work.precision));
  benchmark::RegisterBenchmark(name.c_str(), [&work](benchmark::State& state) { run(state, work); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace howmany::benches
