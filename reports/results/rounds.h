// SPDX-License-Identifier: Apache-2.0
// Combines several rounds into one table. A round runs the same cases in fresh processes. Variation
// between starts exceeds variation within one, and only rounds include it. Values only; not tied to
// any thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/results/record.h"

namespace howmany::reports {

// Combines cell by cell, in order of appearance. Each metric is the median over the rounds that
// measured it. Its interval is where the median of another such set of rounds is expected
// (repeat_interval()). A cell fails if it failed in any round, and is skipped if no round measured
// it.
std::vector<Measurement> over_rounds(const std::vector<std::vector<Measurement>>& rounds);

// Combines the values of rounds as over_rounds() does. One value has no interval.
Metric metric_over_rounds(const std::vector<double>& values, const std::string& unit);

// Returns the requested number of rounds, else as many as fit into `budget` seconds. With time for
// fewer than three rounds, returns 1, because two give no spread.
int plan_rounds(double budget, int backends, std::optional<int> asked = {});

// Divides the remaining time budget among the remaining runs.
//
// Overhead. The untimed seconds of each backend's last run, such as its start, are subtracted
//   first.
// Enough time. All runs get equal time, but no run gets less than it needs. A slow backend uses
//   what a fast one does not need.
// Too little time. A backend that skipped cases first gets the time for one complete run.
class RoundTime {
 public:
  struct Run {
    double seconds = 0, measuring = 0;  // wall clock, and the timed part as assigned
    double needs = 0;                   // for all its cases, as known so far
    bool whole = true;                  // no case was skipped for lack of time
  };
  explicit RoundTime(double budget) : budget_(budget) {}
  // Returns the seconds for the first of `runs`, which are the backends of the remaining runs.
  // `now` is in seconds since the start.
  double seconds_next(double now, std::span<const std::string> runs) const;
  void took(const std::string& backend, const Run& run);

 private:
  double left(double now, std::span<const std::string> runs) const;
  double scarce(std::span<const std::string> runs, const std::vector<double>& needs,
                double left) const;

  const double budget_;
  std::map<std::string, Run> last_;
  std::set<std::string> whole_;  // backends that had a complete run
};

}  // namespace howmany::reports
