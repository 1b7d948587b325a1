// SPDX-License-Identifier: Apache-2.0
// Predicted improvements of a loader's rate.
#pragma once

#include <string>
#include <vector>

#include "reports/workers/points.h"

namespace howmany::reports {

struct WorkersLever {
  std::string what;
  double gain = 1;  // predicted factor on samples/s
};

// Returns at most three improvements, the best first. `best` is the point with the best rate,
// `recommended` the number of workers of the answer.
std::vector<WorkersLever> levers_of(const WorkersFacts& facts, const WorkersPoint& best,
                                    int recommended);

}  // namespace howmany::reports
