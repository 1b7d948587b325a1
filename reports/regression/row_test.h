// One row of a comparison: its medians, shift, interval and unadjusted p-values from the samples of
// both sides. For judge.cpp. Values only; safe from any thread.
#pragma once

#include <optional>
#include <vector>

#include "reports/regression/judge.h"
#include "reports/regression/ranks.h"

namespace howmany::reports {

// One metric of one benchmark on both sides, in the order of the blocks when paired.
struct Sides {
  std::vector<double> base, candidate;
};

// Fills `row`, whose kind and floor are set. The shift of the logarithms, positive is worse, when
// its p-values wait for the family; nothing when the row is decided or cannot be tested.
std::optional<Shift> test(Row& row, const Sides& sides, bool paired);

// What stands between a row and a verdict.
struct Doubt {
  int64_t least = 0, tests = 0;  // samples with which the test could reject, among how many tests
  double within = 0;             // what counts as the same
  bool paired = false;
};
// Says in row.why and row.needed how many samples would settle it.
void explain_doubt(Row& row, const Shift& shift, const Doubt& doubt);

Interval as_change(const Interval& log_interval);

}  // namespace howmany::reports
