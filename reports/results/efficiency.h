// SPDX-License-Identifier: Apache-2.0
// Computes speedup and efficiency, with intervals, from the step times of rounds. A round measures
// every configuration once, each in a fresh process. Drift of the machine then affects all
// configurations of a round alike, and their ratios are free of it.
//   S(n) = work(n) T(1) / T(n), with work(n) the samples per step relative to n = 1:
//   strong (equal global batch):     S(n) = T(1) / T(n)
//   weak (equal batch per device):   S(n) = n T(1) / T(n)
//   efficiency = S(n) / n
// Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/statistics.h"

namespace howmany::reports {

// Step times in seconds, by round. A round that was not measured is absent.
using Rounds = std::map<int, std::vector<double>>;

struct Estimate {
  double value = 0;
  std::optional<Interval> interval;  // 95 %; absent with too few samples
  int64_t n = 0;
  std::string
      basis;  // "rounds": Student's t over rounds; "iterations": order statistics within runs
};

// Minimum number of rounds for an interval over rounds. With fewer, the interval comes from within
// the runs and does not include variation between runs.
constexpr int kRoundsForT = 3;

// Returns the geometric mean of the rounds' medians.
Estimate step_time(const Rounds& rounds);
// Returns T(base) / T(other) over the rounds that both have. Throws std::invalid_argument if they
// have no common round.
Estimate time_ratio(const Rounds& base, const Rounds& other);
Estimate scaled(Estimate estimate, double factor);

enum class Scaling { kWeak, kStrong };
// `work`: the samples per step relative to those of `single`; n for weak scaling, 1 for strong.
Estimate speedup(const Rounds& single, const Rounds& rounds, double work);

// Returns the total number of rounds that would probably move the interval off `threshold`. Returns
// nullopt if the interval already excludes it, if the basis is not rounds, or if more than `most`
// are needed.
std::optional<int> rounds_to_decide(const Estimate& estimate, double threshold, int most = 50);

}  // namespace howmany::reports
