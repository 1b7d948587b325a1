// SPDX-License-Identifier: Apache-2.0
// Chooses the numbers of workers to measure. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/workers/points.h"

namespace howmany::reports {

// Returns the numbers of workers to measure next, one or several interleaved. Empty if the answer
// is decided.
//
// - First the predicted number, then the deciding neighbour: fewer while it suffices, more while it
//   gains.
// - If samples wait for storage, loaders start slowly: several larger numbers start together. Then
//   the number on their curve and its neighbours.
// - Then those that may be the best, until it is decided.
// - Without a demand, each is interleaved with the best so far, because a shared machine's speed
//   varies by more than the numbers differ.
std::vector<int> next_trials(const WorkersFacts& facts);

// Returns why no number can be measured in `left` seconds, or "". The batches that all devices hold
// may not fit into memory or may take longer.
std::string why_unmeasurable(const WorkersFacts& facts, double left);

// Returns the seconds for each of `numbers` in the next interleaved run, of `left` for all. Numbers
// with few rounds take the time of few rounds, or a share of `left` if that is more. The rest
// confirms the answer. If time is short, they take all.
double seconds_in_turn(const WorkersFacts& facts, const std::vector<int>& numbers, double left);

}  // namespace howmany::reports
