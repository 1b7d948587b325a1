// Speedup and efficiency with their intervals, from the step times of rounds. A round measures
// every configuration once, each in a fresh process, so that a drift of the machine hits all alike
// and the ratio of two configurations of one round is free of it.
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

// Seconds per step by round; a round that was not measured is absent.
using Rounds = std::map<int, std::vector<double>>;

struct Estimate {
  double value = 0;
  std::optional<Interval> interval;  // 95 %; absent when there is too little to say
  int64_t n = 0;
  std::string
      basis;  // "rounds": Student's t over rounds; "iterations": order statistics within runs
};

// Intervals over rounds need this many; with fewer they come from within the runs, which cannot see
// what differs between runs.
constexpr int kRoundsForT = 3;

// Median over rounds of the medians; the interval is that of their geometric mean.
Estimate step_time(const Rounds& rounds);
// T(base) / T(other), of the rounds both have. Throws std::invalid_argument when there is none.
Estimate time_ratio(const Rounds& base, const Rounds& other);
Estimate scaled(Estimate estimate, double factor);

enum class Scaling { kWeak, kStrong };
Estimate speedup(const Rounds& single, const Rounds& rounds, int devices, Scaling scaling);

// How many rounds in all would probably free the interval of `threshold`; nothing when it already
// is, when it did not come from rounds, or when more than `most` would be needed.
std::optional<int> rounds_to_decide(const Estimate& estimate, double threshold, int most = 50);

}  // namespace howmany::reports
