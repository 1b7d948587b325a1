// SPDX-License-Identifier: Apache-2.0
#include "benches/script/pace.h"

#include <gmock/gmock.h>

#include "core/base/statistics.h"

namespace howmany::benches {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr double kBatch = 8;

// Cycles of `lengths` steps of 1 s, of which the last takes `extra` longer.
TimedSteps cycles_of(const std::vector<size_t>& lengths, double extra, double wait = 0) {
  TimedSteps steps;
  for (const size_t length : lengths) {
    const size_t first = steps.seconds.size();
    for (size_t i = 0; i < length; ++i) {
      const bool last = i + 1 == length;
      steps.seconds.push_back(1 + (last ? extra : 0));
      steps.busy.push_back(steps.seconds.back() - (last ? wait : 0));
      steps.samples.push_back(kBatch);
    }
    steps.cycles.push_back({first, first + length - 1});
  }
  return steps;
}

TEST(StepTimes, AreThoseOfTheStepsWithoutCycles) {
  TimedSteps steps = cycles_of({4, 4}, 6);
  steps.cycles.clear();
  EXPECT_THAT(step_times(steps, kBatch), ElementsAreArray(steps.seconds));
}

TEST(StepTimes, HaveOneForEachCycle) {
  EXPECT_THAT(step_times(cycles_of({4, 4, 4}, 6), kBatch), ElementsAre(2.5, 2.5, 2.5));
}

TEST(StepTimes, HaveTheMeanOfAllCyclesAsMedian) {
  TimedSteps steps = cycles_of({4, 4, 4}, 6);
  steps.seconds.back() += 12;  // a checkpoint
  EXPECT_DOUBLE_EQ(median(step_times(steps, kBatch)), (12 + 3 * 6 + 12) / 12.0);
}

TEST(StepTimes, AreRelativeToTheSamplesOfTheCycle) {
  TimedSteps steps = cycles_of({4, 4}, 6);
  for (const Cycle& cycle : steps.cycles) steps.samples[cycle.last] = kBatch / 2;
  EXPECT_THAT(step_times(steps, kBatch), ElementsAre(10 / 3.5, 10 / 3.5));
}

TEST(StepTimes, AreRelativeToTheSamplesIfThoseVary) {
  const TimedSteps steps{
      .seconds = {1, 2, 3, 4}, .busy = {1, 2, 3, 4}, .samples = {1, 2, 3, 4}, .cycles = {}};
  EXPECT_THAT(step_times(steps, 2), ElementsAre(2, 2, 2, 2));
}

TEST(BetweenSteps, IsTheShareBeyondTheUsualStep) {
  EXPECT_DOUBLE_EQ(between_steps_fraction(cycles_of({4, 4, 4}, 6)).value(), 0.6);
}

TEST(BetweenSteps, LeavesOutWaitsForData) {
  EXPECT_DOUBLE_EQ(between_steps_fraction(cycles_of({4, 4, 4}, 6, 6)).value(), 0);
}

TEST(BetweenSteps, IsUnknownIfCyclesDiffer) {
  EXPECT_FALSE(between_steps_fraction(cycles_of({1, 4, 2, 7}, 6)));
  EXPECT_FALSE(between_steps_fraction(cycles_of({}, 6)));
}

TEST(StillChanged, ComparesTheFirstAndTheLastSteps) {
  std::vector<double> samples(12, 64);
  EXPECT_FALSE(still_changed(samples));
  samples.back() = 16;  // the end of an epoch
  EXPECT_FALSE(still_changed(samples));
  for (size_t i = 9; i < 12; ++i) samples[i] = 128;
  EXPECT_TRUE(still_changed(samples));
}

}  // namespace
}  // namespace howmany::benches
