// SPDX-License-Identifier: Apache-2.0
// The pace of a training loop: the time of a step over whole cycles of the loop. Values only; not
// tied to any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace howmany::benches {

// Steps by index, from the one after a long step to the next long one.
struct Cycle {
  size_t first = 0, last = 0;
};

// The timed steps over all ranks. The vectors have the same length.
struct TimedSteps {
  std::vector<double> seconds;  // the maximum over ranks
  std::vector<double> busy;     // likewise, without the wait for data
  std::vector<double> samples;  // the sum over ranks
  std::vector<Cycle> cycles;    // whole ones, in order
};

// Returns times of a step of `batch` samples: those of all steps if there are no cycles. With
// cycles, their median is the time of all cycles relative to their samples. They are then one for
// each cycle, because the steps of a cycle are not independent; one for each step if cycles differ
// in length.
std::vector<double> step_times(const TimedSteps& steps, double batch);

// Returns the share of the time of the cycles in long steps, beyond the usual step and without
// waits for data. Returns nullopt without cycles, and if they have different numbers of steps:
// batches of different lengths make long steps too.
std::optional<double> between_steps_fraction(const TimedSteps& steps);

// Returns true if the last steps have another number of samples than the first ones.
bool still_changed(std::span<const double> samples);

}  // namespace howmany::benches
