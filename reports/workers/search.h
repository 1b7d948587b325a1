// SPDX-License-Identifier: Apache-2.0
// Chooses the numbers of workers to measure: a sweep of 0, 1, 2, 4, ..., then the numbers around
// the answer so far. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/workers/points.h"

namespace howmany::reports {

constexpr double kMinTurn = 0.3;  // seconds that count

// Returns 0, 1, 2, 4, ... up to `most`, and `most` itself.
std::vector<int> numbers_to_sweep(int most);
// Returns `chosen` and the numbers between it and the next smaller one that was measured, at most
// three, evenly spaced. If there are none between: `chosen` and its neighbours, for more turns.
std::vector<int> numbers_to_refine(const WorkersPoints& points, const WorkersPoint& chosen);

// Returns the answer so far: the fewest workers that meet the demand. Without one, or if none does,
// the fewest near the best rate. nullptr if nothing was measured.
const WorkersPoint* chosen_of(const WorkersFacts& facts);
// Returns the numbers that take turns next: `facts.wanted`, or those of the sweep. Then those to
// refine, the best one, and twice the answer if no larger number was measured. Empty if all turns
// failed.
std::vector<int> next_numbers(const WorkersFacts& facts);
bool has_new(const WorkersFacts& facts, const std::vector<int>& numbers);

// Returns the expected seconds of one turn, including the batches that are made before it counts.
double turn_seconds(const WorkersFacts& facts, int workers);
// Returns those of `numbers` of which each can have a turn in `left` seconds: the nearest to the
// predicted answer, at least one.
std::vector<int> in_time(const WorkersFacts& facts, std::vector<int> numbers, double left);

// Returns why no number can be measured in `left` seconds, or "". The batches that all devices hold
// may not fit into memory or may take longer.
std::string why_unmeasurable(const WorkersFacts& facts, double left);

}  // namespace howmany::reports
