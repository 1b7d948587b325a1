// Timing of a step over ranks. The rules: warm up, time, take the maximum over ranks, stop when the
// interval of the median is tight or the budget is spent. Collective functions are called by every
// rank of `comm`, in order.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/base/statistics.h"
#include "parallel/comm.h"

namespace howmany::benches {

struct TimingOptions {
  double budget_seconds = 5;        // timed iterations stop here
  double target_half_width = 0.01;  // ... or when the 95 % interval of the median is this tight,
                                    // relative to the median
  int min_iterations = 6;           // the least that have an interval
  int max_iterations = 10'000;
  int warmup_iterations = 2;
  double gap_seconds = 0;  // busy time of every rank between the barrier and the iteration
};

struct Samples {
  std::vector<double> seconds;  // one per iteration: the maximum over ranks
  bool converged = false;       // stopped by the interval, not by the budget
};

// What of these fits into their budget when one iteration, now done, took so long: as asked for,
// less the warm-up that it was; or at least one, told without an interval; or nothing.
std::optional<TimingOptions> fitting(const TimingOptions& options, double one_seconds);

// Times body() between barriers. Every rank takes the same decisions, since all see the same
// maxima. Collective.
Samples time_iterations(Comm& comm, const TimingOptions& options,
                        const std::function<void()>& body);

// The same for one thread, of what one() tells by a clock of its own. The budget is the host's
// time.
Samples sample(const TimingOptions& options, const std::function<double()>& one);

// As time_iterations, of steps that a GPU works through behind the host, which is at most one step
// ahead of it: a step lasts from the end of the one before to its own, by the GPU's clock, whatever
// it did meanwhile. Collective.
Samples time_on_gpu(Comm& comm, const TimingOptions& options, int gpu,
                    const std::function<void()>& step);

struct PairedSamples {
  Samples ours, bare;
  std::vector<double> ratios;  // ours / bare, of neighbours
};
// Of each round what `ours` and `theirs` return, after a few rounds to warm up; neither always
// follows the other, because what one leaves in the caches helps the next.
struct Turns {
  std::vector<double> ours, theirs;
};
Turns in_turn(int rounds, const std::function<double()>& ours,
              const std::function<double()>& theirs);
PairedSamples paired(Turns turns);
// body() as time_iterations times it, and `bare`, which returns the seconds that it timed by
// itself, in turn. Collective.
PairedSamples time_in_turn(Comm& comm, int rounds, const std::function<void()>& body,
                           const std::function<double()>& bare);

// median_interval(), or 0 to infinity if there are too few samples to bound the median.
Interval median_bounds(std::span<const double> samples);

}  // namespace howmany::benches
