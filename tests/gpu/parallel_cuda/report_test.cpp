// SPDX-License-Identifier: Apache-2.0
// The reports of modes for steps that imitated GPUs run asynchronously.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/backends/cuda/runtime/runtime.h"
#include "parallel/launch/launch.h"
#include "tests/fakes/fake_gpu.h"
#include "tests/support/through.h"
#include "tests/support/training.h"

namespace howmany {
namespace {

using namespace testing_support;
using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWork(300);
constexpr double kWorkSeconds = 0.3;

// Enqueues GPU work of a fixed duration, which starts when all earlier work is done.
void ask_for_work(int gpu) {
  using Time = SteadyClock::time_point;
  const auto over = [](void* at) {
    auto* const end = static_cast<Time*>(at);
    if (*end == Time()) *end = SteadyClock::now() + kWork;
    if (SteadyClock::now() < *end) return false;
    delete end;
    return true;
  };
  hm_fake_gpu_queue(cuda::stream_of(gpu), over, new Time());
}

// A model of three units. If balanced, the last unit, which is slow in backward, is its own stage.
ModelSpec model() {
  return model_through([](const Tensor&) {},
                       [](const Tensor& dy) { ask_for_work(dy.device().index); }, true);
}

Device gpu(int index) { return {DeviceType::cuda, index}; }

// Returns the report of the first of two steps.
StepReport report_of(Mode& mode) {
  for (int step = 0; step < 2; ++step)
    mode.step(rows_of(global_batch(model(), 4, step), mode.share())).value();
  return mode.report();
}

TEST(Report, OfDdpExcludesKernels) {
  for (const bool bucketed : {true, false})
    launch_threads(2, [&](Comm& comm) {
      const auto mode = make_mode("ddp", {.model = model(),
                                          .comm = &comm,
                                          .devices = {gpu(comm.rank())},
                                          .sync = {.bucketed = bucketed}});
      EXPECT_LT(report_of(*mode).exposed_communication_seconds, kWorkSeconds / 2);
    });
}

TEST(Report, OfDdpHasTheWaitForAnotherGpu) {
  launch_threads(2, [](Comm& comm) {
    const auto mode = make_mode(
        "ddp", {.model = make_model("simple_net"), .comm = &comm, .devices = {gpu(comm.rank())}});
    for (int step = 0; step < 2; ++step) {
      if (step == 0 && comm.rank() == 1) std::this_thread::sleep_for(kWork);
      mode->step(rows_of(global_batch(make_model("simple_net"), 4, step), mode->share())).value();
    }
    const double waited = mode->report().exposed_communication_seconds;
    EXPECT_GT(waited, comm.rank() == 0 ? kWorkSeconds / 3 : 0);
  });
}

TEST(Report, OfStagesUsesGpuTimes) {
  const auto mode = make_mode("model:placement=0:cuda:0+1-2:cuda:1",
                              {.model = model(), .devices = {gpu(0), gpu(1)}});
  const double bubble = report_of(*mode).bubble;
  EXPECT_GT(bubble, 0.35) << "one of two waits while the other is at its work";
  EXPECT_LT(bubble, 0.65);
}

TEST(Report, OfStagesOverRanksUsesGpuTimes) {
  launch_threads(2, [](Comm& comm) {
    const auto mode = make_mode("pipeline:micro_batches=1",
                                {.model = model(), .comm = &comm, .devices = {gpu(comm.rank())}});
    const StepReport report = report_of(*mode);
    const double want = comm.rank() == 0 ? 1 : 0;
    EXPECT_NEAR(report.bubble, want, 0.3);
    EXPECT_NEAR(report.waited_seconds, want * kWorkSeconds, 0.3 * kWorkSeconds);
  });
}

}  // namespace
}  // namespace howmany
