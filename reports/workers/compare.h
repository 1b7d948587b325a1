// SPDX-License-Identifier: Apache-2.0
// Compares measured numbers of workers, with errors. Values only; not tied to any thread.
#pragma once

#include <optional>

#include "reports/workers/points.h"

namespace howmany::reports {

// A rate in samples/s with the standard error of its logarithm.
struct ComparedRate {
  double value = 0, error = 0;
  double sure() const;  // the rate minus one standard error
};
// Returns the rate that decides comparisons, or 0 for a failed point.
//
// By rate. The median of the runs. The error combines the spread of all points.
// By busy cores. Used if samples wait for storage, because busy cores do not vary with the speed of
//   the machine or a loader's place in memory. From four numbers on, a curve is fitted. The cost of
//   a sample may grow linearly with the workers.
// Fallback. Rates decide if they clearly contradict the busy cores.
ComparedRate compared_rate(const WorkersFacts& facts, const WorkersPoint& point);
bool told_by_cores(const WorkersFacts& facts);
void compare_by_cores(WorkersFacts& facts);  // sets `by_cores` and `curve`; add_rounds() calls it
// If told_by_cores(): true if the point reaches the best sure rate within 1.25 %. The threshold is
// stricter than the 2 % for rates, so that repeated runs choose the same number.
bool suffices_by_cores(const WorkersFacts& facts, const WorkersPoint& point, double best);
// Returns the fewest sufficient workers on the curve, measured or not. Returns nullopt without a
// curve.
std::optional<int> fewest_by_curve(const WorkersFacts& facts, int limit);

}  // namespace howmany::reports
