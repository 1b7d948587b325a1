// One table out of several rounds, each a run of the same cases in fresh processes: what differs
// from one start to the next is larger than what differs within one, and only rounds can see it.
// Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/record.h"

namespace howmany {

// Cell by cell, in the order first seen: of each metric the median over the rounds that measured
// it, with the interval in which the median of another such set of rounds is to be expected
// (repeat_interval). A cell fails when it failed once, and is skipped when no round measured it.
std::vector<Measurement> over_rounds(const std::vector<std::vector<Measurement>>& rounds);

// Of the values of several rounds: as over_rounds makes them. One value has no interval.
Metric metric_over_rounds(const std::vector<double>& values, const std::string& unit);

struct RoundPlan {
  int rounds = 1;
  double seconds = 0;  // for one backend in one round, its start not counted
};
// As many rounds as are asked for, else as `budget` seconds have room for; fewer than three would
// say nothing of spread, so then there is one.
RoundPlan plan_rounds(double budget, int backends, std::optional<int> asked = {});

}  // namespace howmany
