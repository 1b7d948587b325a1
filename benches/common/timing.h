// SPDX-License-Identifier: Apache-2.0
// Times a step over ranks. The rules: warm up, time, take the maximum over ranks. Timing stops if
// the interval of the median is tight or the budget is spent. Every rank of `comm` makes the same
// collective calls in order.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/base/statistics.h"
#include "parallel/comm/comm.h"

namespace howmany::benches {

struct TimingOptions {
  double budget_seconds = 5;  // of the timed iterations
  // Iterations also stop if half the 95 % interval of the median is below this share of it.
  double target_half_width = 0.01;
  int min_iterations = 6;  // an interval needs six
  int max_iterations = 10'000;
  int warmup_iterations = 2;
  double gap_seconds = 0;  // busy wait of every rank between the barrier and the iteration
};

struct Samples {
  std::vector<double> seconds;  // one per iteration: the maximum over ranks
  bool converged = false;       // the interval became tight before the budget was spent
};

// Returns the options that fit into their budget, given that one iteration is done and took
// `one_seconds`. It counts as warm-up. If not all iterations fit, the result has as many as fit,
// without an interval. Returns nullopt if not even one fits.
std::optional<TimingOptions> fitting(const TimingOptions& options, double one_seconds);

// Times body() between barriers. Every rank takes the same decisions, because all use the same
// maxima. Collective.
Samples time_iterations(Comm& comm, const TimingOptions& options,
                        const std::function<void()>& body);

// Times on one thread. one() returns the seconds that its own clock measured. The budget counts the
// host's time.
Samples sample(const TimingOptions& options, const std::function<double()>& one);

// As time_iterations(), for steps that a GPU runs asynchronously. The host is at most one step
// ahead. A step lasts from the end of the previous step to its own end, by the GPU's clock.
// Collective.
Samples time_on_gpu(Comm& comm, const TimingOptions& options, int gpu,
                    const std::function<void()>& step);

// The results of `ours` and `theirs` in each round, after a few warm-up rounds. The order
// alternates, because one call's cache contents help the next.
struct Turns {
  std::vector<double> ours, theirs;
};
Turns in_turn(int rounds, const std::function<double()>& ours,
              const std::function<double()>& theirs);

// Returns after `seconds`, without sleeping.
void busy_wait(double seconds);

// median_interval(), or [0, infinity] if there are too few samples to bound the median.
Interval median_bounds(std::span<const double> samples);

}  // namespace howmany::benches
