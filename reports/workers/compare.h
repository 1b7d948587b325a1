// SPDX-License-Identifier: Apache-2.0
// Compares numbers of workers that took turns. Points with an error or without turns never win.
// Values only; not tied to any thread.
#pragma once

#include <map>

#include "reports/results/efficiency.h"
#include "reports/workers/points.h"

namespace howmany::reports {

constexpr double kNoticeable = 1.05;  // noticeable factor of a rate
constexpr int kMinTurns = 3;          // of each number that can win, for a certain answer

// Returns how many times as fast `point` is as `than`. The ratios of their common rounds decide,
// because the speed of a shared machine changes between rounds. Without a common round, a third
// point that shares rounds with both links them. Without one, there is no interval.
Estimate gain(const WorkersPoints& points, const WorkersPoint& point, const WorkersPoint& than);

// Returns the fastest point, or nullptr.
const WorkersPoint* best_of(const WorkersPoints& points);
// Returns the fewest workers that reach 98 % of `best`. A number that reaches 95 % suffices unless
// its interval excludes 98 %, and without an interval 85 %: more workers must be shown to pay.
const WorkersPoint& fewest_near(const WorkersPoints& points, const WorkersPoint& best);
// Returns the fewest workers with a median stall of at most `max_stall`, or nullptr.
const WorkersPoint* fewest_that_feed(const WorkersPoints& points, double max_stall);
// Returns the answer so far: the fewest workers that meet the demand. Without one, or if none does,
// the fewest near the best rate. nullptr if nothing was measured.
const WorkersPoint* chosen_of(const WorkersFacts& facts);

// True if the turns do not exclude that `point` reaches 98 % of the best rate.
bool may_win(const WorkersPoints& points, const WorkersPoint& point);
// Returns a smaller number of workers than which `chosen` is faster by more than the smaller one
// waited for data: a gain that loading does not explain. Or nullptr.
const WorkersPoint* unexplained_by_stall(const WorkersPoints& points, const WorkersPoint& chosen);
// Returns the turns that are missing for a certain answer, by workers: each number that can win
// needs kMinTurns, and twice as many if its gain is unexplained. With a demand, only the answer can
// win.
std::map<int, int> turns_missing(const WorkersFacts& facts);

}  // namespace howmany::reports
