// Which numbers of workers to measure next. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/workers/points.h"

namespace howmany::reports {

// The numbers of workers to measure next: one, or several in turn; none when the answer is decided.
// First the predicted one, then the neighbour that decides: fewer while it suffices, more while it
// gains. Where samples wait for storage loaders start slowly: several up to twice as many and more
// at once, then the one that their curve points to and its neighbours. Then those that may be the
// best, until it is told. Without a demand each is measured in turn with the best so far: the speed
// of a shared machine differs from one second to the next by more than such numbers do.
std::vector<int> next_trials(const WorkersFacts& facts);

// Why no number at all can be measured in so many seconds: the batches that all devices hold
// without any worker do not fit into memory, or take longer than that. Empty: they can.
std::string why_unmeasurable(const WorkersFacts& facts, double left);

// Seconds for each of these in their next turns, of so many that are left for all. Numbers of which
// few rounds tell take what these take, or a share where that is more, and the rest makes sure; all
// where there is not enough for both.
double seconds_in_turn(const WorkersFacts& facts, const std::vector<int>& numbers, double left);

}  // namespace howmany::reports
