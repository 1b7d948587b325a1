// SPDX-License-Identifier: Apache-2.0
// The gain of captured steps, on imitated GPUs, where the numbers have no meaning.
#include "benches/speedup/graph_gain.h"

#include <gtest/gtest.h>

#include "benches/common/timing.h"
#include "benches/common/trainer.h"
#include "benches/speedup/steps.h"
#include "core/gpu/gpu.h"
#include "parallel/launch/launch.h"

namespace howmany::benches {
namespace {

Workload small_work() {
  Workload work;
  work.model = "mlp:sizes=13-17-9-7-5";
  work.devices = {{DeviceType::cuda, 0}};
  work.global_batch = 8;
  work.steady = true;
  work.optim.lr = 0.01;
  return work;
}

TEST(GraphGain, IsTheMedianRatioOfRounds) {
  const Workload work = small_work();
  const DatasetPtr data = open_dataset(work);
  launch_threads(1, [&](Comm& alone) {
    const GraphGain found = measure_graph_gain(work, *data, alone, {.rounds = 9, .together = 2});
    ASSERT_EQ(found.plain.size(), 9u);
    ASSERT_EQ(found.captured.size(), 9u);
    std::vector<double> ratios;
    for (size_t i = 0; i < 9; ++i) ratios.push_back(found.plain[i] / found.captured[i]);
    EXPECT_EQ(found.gain, quantile(ratios, 0.5));
    EXPECT_LE(found.interval.low, found.gain);
    EXPECT_GE(found.interval.high, found.gain);
    EXPECT_GT(found.interval.low, 0);
  });
}

TEST(GraphGain, NeedsAGpu) {
  Workload work = small_work();
  const DatasetPtr data = open_dataset(work);
  launch_threads(1, [&](Comm& alone) {
    work.devices = {{DeviceType::cpu, 0}};
    EXPECT_THROW(measure_graph_gain(work, *data, alone, {}), std::invalid_argument);
  });
}

TEST(MeasureSteps, TimesCapturedSteps) {
  Workload work = small_work();
  work.mode = "single:graph=on";
  const DatasetPtr data = open_dataset(work);
  launch_threads(1, [&](Comm& alone) {
    const TimingOptions timing{.min_iterations = 6, .max_iterations = 6};
    const StepTimes times = measure_steps(work, timing, *data, alone, work.devices[0], {});
    EXPECT_EQ(times.samples.seconds.size(), 6u);
    EXPECT_GT(times.loss, 0);
  });
}

// The check holds a second model of 64 MiB with its gradients.
TEST(MeasureSteps, ReleaseTheMemoryOfTheCheck) {
  Workload work = small_work();
  work.model = "mlp:sizes=4096-4096-4";
  work.global_batch = 2;
  const DatasetPtr data = open_dataset(work);
  launch_threads(1, [&](Comm& alone) {
    const TimingOptions timing{.min_iterations = 1, .max_iterations = 1, .warmup_iterations = 0};
    const StepTimes times = measure_steps(work, timing, *data, alone, work.devices[0], {});
    const auto left = gpu::memory_use(work.devices[0].index);
    EXPECT_LT(static_cast<double>(left.in_use + left.cached), times.peak_bytes + (64 << 20));
  });
}

}  // namespace
}  // namespace howmany::benches
