// SPDX-License-Identifier: Apache-2.0
// Combines several rounds into one table. A round runs the same cases in fresh processes. Variation
// between starts exceeds variation within one, and only rounds include it. Values only; not tied to
// any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/results/record.h"

namespace howmany::reports {

// Combines cell by cell, in order of appearance. Each metric is the mean over the rounds that
// measured it. Its interval is where the mean of another such set of rounds is expected
// (repeat_interval()). A cell fails if it failed in any round, and is skipped if no round measured
// it.
std::vector<Measurement> over_rounds(const std::vector<std::vector<Measurement>>& rounds);

// Combines the values of rounds as over_rounds() does: the geometric mean if all are above 0, else
// the arithmetic mean, with its interval. One value has no interval.
Metric metric_over_rounds(const std::vector<double>& values, const std::string& unit);

}  // namespace howmany::reports
