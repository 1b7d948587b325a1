// SPDX-License-Identifier: Apache-2.0
// Compares numbers of workers that took turns. Points with an error or without turns never win.
// Values only; not tied to any thread.
#pragma once

#include <optional>

#include "reports/gpus/efficiency.h"
#include "reports/workers/points.h"

namespace howmany::reports {

// Returns how many times as fast `point` is as `than`. The ratios of their common rounds decide,
// because the speed of a shared machine changes between rounds. Without a common round, a third
// point that shares rounds with both links them. Without one, there is no interval.
Estimate gain(const WorkersPoints& points, const WorkersPoint& point, const WorkersPoint& than);

// Returns the fastest point, or nullptr.
const WorkersPoint* best_of(const WorkersPoints& points);
// Returns the fewest workers that reach 98 % of `best`. A number that reaches 95 % suffices unless
// its interval excludes 98 %, and without an interval 85 %: more workers must be shown to pay.
const WorkersPoint& fewest_near(const WorkersPoints& points, const WorkersPoint& best);
// Returns the fewest workers with a median stall of at most `most_stall`, or nullptr.
const WorkersPoint* fewest_that_feed(const WorkersPoints& points, double most_stall);

}  // namespace howmany::reports
