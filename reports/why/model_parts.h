// SPDX-License-Identifier: Apache-2.0
// The parts of the lost time of howmany's own models, from the metrics of their runs. With f the
// share of data wait, x the longest exposed exchange of a rank, s the extra time of the slowest
// rank, and b the bubble of a pipeline:
//   ideal      step * (1 - f) of one device, times the samples of a device over its samples
//   data       f * step
//   slowest    s
//   exchange   x - s, because the ranks that wait for the slowest are in the exchange
//   machinery  b * step, and what the mode costs on one device, if that was measured
//   compute    the remainder
// Values only; not tied to any thread.
#pragma once

#include <vector>

#include "reports/gpus/results.h"
#include "reports/why/parts.h"

namespace howmany::reports {

// Returns the parts of every measured row, in the order of the plan.
std::vector<CountParts> parts_of_models(const Plan& plan, const Results& results);

}  // namespace howmany::reports
