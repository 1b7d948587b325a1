// SPDX-License-Identifier: Apache-2.0
// Ranges of sizes and the backend that is the fastest in each. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/results/curve.h"

namespace howmany::reports {

// From this size to the next range, this backend is the fastest, or not apart from the fastest.
struct BestRange {
  std::string backend;
  double from = 0;
  bool certain = true;  // apart from every other backend at all of its sizes
  bool partly = false;  // at one of its sizes or more
};
struct NamedCurve {
  std::string backend;
  Curve curve;
};
// Returns as few ranges as the intervals allow, over the common sizes. The first starts at 0.
// Borders are where the lines between neighbouring sizes cross. Empty without a common size.
std::vector<BestRange> best_ranges(const std::vector<NamedCurve>& curves);

}  // namespace howmany::reports
