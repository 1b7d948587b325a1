// SPDX-License-Identifier: Apache-2.0
// Times asynchronous steps, on imitated GPUs, whose work can be delayed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "benches/common/timing.h"
#include "core/backends/cuda/runtime/runtime.h"
#include "core/gpu/gpu.h"
#include "parallel/launch/launch.h"
#include "tests/fakes/fake_gpu.h"

namespace howmany::benches {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kWork(4);

// GPU work of a fixed duration, which starts when all earlier work is done.
class Steps {
 public:
  void operator()() {
    most_ahead_ = std::max(most_ahead_, ++asked_ - done_);
    auto* const one = new One{this, {}};
    hm_fake_gpu_queue(
        cuda::stream_of(0), [](void* step) { return static_cast<One*>(step)->over(); }, one);
  }
  int asked() const { return asked_; }
  int most_ahead() const { return most_ahead_; }

 private:
  struct One {
    bool over() {
      if (end == Clock::time_point()) end = Clock::now() + kWork;
      if (Clock::now() < end) return false;
      ++of->done_;
      delete this;
      return true;
    }
    Steps* of;
    Clock::time_point end;
  };
  int asked_ = 0, most_ahead_ = 0;
  std::atomic<int> done_ = 0;
};

TEST(TimeOnGpu, TimesFromTheEndOfTheStepBefore) {
  Steps steps;
  launch_threads(1, [&](Comm& comm) {
    const TimingOptions options{
        .target_half_width = 0, .min_iterations = 7, .max_iterations = 20, .warmup_iterations = 2};
    const Samples samples = time_on_gpu(comm, options, 0, std::ref(steps));
    ASSERT_EQ(samples.seconds.size(), 20u);
    const double least = std::chrono::duration<double>(kWork).count();
    for (const double seconds : samples.seconds) EXPECT_GE(seconds, 0.99 * least);
  });
  gpu::synchronize(0);
  EXPECT_GT(steps.asked(), 22) << "each look costs a step that is not counted";
}

TEST(TimeOnGpu, LetsTheHostRunOneStepAhead) {
  Steps steps;
  launch_threads(1, [&](Comm& comm) {
    time_on_gpu(comm, {.min_iterations = 8, .max_iterations = 8, .warmup_iterations = 0}, 0,
                std::ref(steps));
  });
  EXPECT_EQ(steps.most_ahead(), 2) << "the one it asks for and the one before";
}

TEST(TimeOnGpu, StopsWhenTheBudgetIsSpent) {
  Steps steps;
  launch_threads(1, [&](Comm& comm) {
    const Samples samples =
        time_on_gpu(comm, {.budget_seconds = 0, .target_half_width = 0, .min_iterations = 3}, 0,
                    std::ref(steps));
    EXPECT_EQ(samples.seconds.size(), 3u);
    EXPECT_FALSE(samples.converged);
  });
}

}  // namespace
}  // namespace howmany::benches
