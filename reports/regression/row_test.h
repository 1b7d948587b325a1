// SPDX-License-Identifier: Apache-2.0
// Computes one row of a comparison from the samples of both sides: medians, shift, interval and
// unadjusted p-values. For judge.cpp. Values only; safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/regression/judge.h"
#include "reports/regression/ranks.h"

namespace howmany::reports {

// Samples of one metric of one benchmark. Sorted by block if paired.
struct Sides {
  std::vector<double> base, candidate;
};

// Fills `row`. Its kind and floor must be set. Returns the shift of the logarithms (positive is
// worse) if the p-values need Holm's correction. Returns nullopt if the row is decided or cannot be
// tested.
std::optional<Shift> test(Row& row, const Sides& sides, bool paired);

// The data behind an inconclusive row.
struct Doubt {
  int64_t least = 0;  // fewest samples that can reject
  double within = 0;  // largest change that counts as the same
  bool paired = false;
  std::string option;  // sets the number of samples: "--pairs "; "" if unknown
};
// Sets row.why and row.needed to the reason and the number of samples that would settle it.
void explain_doubt(Row& row, const Shift& shift, const Doubt& doubt);

Interval as_change(const Interval& log_interval);

}  // namespace howmany::reports
