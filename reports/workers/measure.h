// SPDX-License-Identifier: Apache-2.0
// The measurement behind every answer of `howmany workers`: a sweep of 0, 1, 2, 4, ..., then the
// numbers around the answer so far, by turns in rounds, until the answer is certain or the time
// budget is spent. One thread.
#pragma once

#include <vector>

#include "core/base/budget.h"
#include "reports/workers/points.h"

namespace howmany::reports {

// A bench program that measures numbers of workers.
class WorkersBench {
 public:
  WorkersBench() = default;
  virtual ~WorkersBench() = default;
  WorkersBench(const WorkersBench&) = delete;
  WorkersBench& operator=(const WorkersBench&) = delete;

  // Gives each of `numbers` turns, in rounds, for about `seconds`, and adds them to the facts.
  // Returns false if it cannot go on: it was interrupted, or facts.stopped has the reason. Throws
  // std::runtime_error if nothing could be measured, and InputError if the bench refuses its
  // arguments.
  virtual bool measure(WorkersFacts& facts, const std::vector<int>& numbers, double seconds) = 0;
  // Returns the seconds of a run of `turns` short turns, as in the last run; 0 before the first.
  virtual double seconds_of(size_t turns) const = 0;
  // Returns the seconds that measure_first_epoch() takes; 0 if it does nothing.
  virtual double first_epoch_seconds() const { return 0; }
  virtual void measure_first_epoch(WorkersFacts&, int /*workers*/) {}
};

// Measures each number once, then what fits into the budget: at last those that lack turns for a
// certain answer. Then the first epoch of the answer. Stops if the bench cannot go on.
void measure_workers(WorkersBench& bench, WorkersFacts& facts, const Budget& budget);

// Returns the numbers that take turns next: `facts.wanted`, or those of the sweep. Then, if the
// largest number is the answer and training still waits: twice and four times as many. Else up to
// three numbers between the answer and the next smaller one, or its neighbours if there are none.
// The best one and those that need more turns (turns_missing()) take part. Empty if all failed.
std::vector<int> next_numbers(const WorkersFacts& facts);

}  // namespace howmany::reports
