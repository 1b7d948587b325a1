// Which of the measured numbers of workers is faster, and how surely. Values only; not tied to any
// thread.
#pragma once

#include <optional>

#include "reports/workers/points.h"

namespace howmany::reports {

// As numbers are compared: samples/s and a standard error, of the logarithm.
struct ComparedRate {
  double value = 0, error = 0;
  double sure() const;  // less what luck may have added
};
// By the median of the runs, with an error from how far those of all points differ and as single
// ones are known to. Where samples wait for storage, by the cores that are kept busy, from four
// numbers on by the curve on which these lie: how fast the machine is from one moment to the next,
// or where in memory a loader lies, does not change them. What a sample takes of a core may grow
// evenly with them. Not by cores where rates plainly tell otherwise. 0 for a point that failed.
ComparedRate compared_rate(const WorkersFacts& facts, const WorkersPoint& point);
bool told_by_cores(const WorkersFacts& facts);
void compare_by_cores(WorkersFacts& facts);  // makes `by_cores`, `curve`; add_rounds() calls it
// Then: whether it makes 98 % of the best sure rate. A little more is asked for: so precisely told,
// the number that makes as much, and not the one before it, is taken as often as can be.
bool suffices_by_cores(const WorkersFacts& facts, const WorkersPoint& point, double best);
// By the curve, measured or not; none without one.
std::optional<int> fewest_by_curve(const WorkersFacts& facts, int limit);

}  // namespace howmany::reports
