// SPDX-License-Identifier: Apache-2.0
// Chooses the numbers of workers to measure: a sweep of 0, 1, 2, 4, ..., then the numbers around
// the answer so far. Values only; not tied to any thread.
#pragma once

#include <vector>

#include "reports/workers/points.h"

namespace howmany::reports {

// Returns 0, 1, 2, 4, ... up to `most`, and `most` itself.
std::vector<int> numbers_to_sweep(int most);
// Returns `chosen` and the numbers between it and the next smaller one that was measured, at most
// three, evenly spaced. If there are none between: `chosen` and its neighbours, for more turns.
std::vector<int> numbers_to_refine(const WorkersPoints& points, const WorkersPoint& chosen);

// Returns the numbers that take turns next: `facts.wanted`, or those of the sweep. Then, if the
// largest number is the answer and training still waits: twice and four times as many. Else those
// to refine, the best one, and those that need more turns (turns_missing()). Empty if all turns
// failed.
std::vector<int> next_numbers(const WorkersFacts& facts);
bool has_new(const WorkersFacts& facts, const std::vector<int>& numbers);

}  // namespace howmany::reports
