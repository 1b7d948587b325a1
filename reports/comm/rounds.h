// One table out of several rounds, each a run of the same cases in fresh processes: what differs
// from one start to the next is larger than what differs within one, and only rounds can see it.
// Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reports/results/record.h"

namespace howmany::reports {

// Cell by cell, in the order first seen: of each metric the median over the rounds that measured
// it, with the interval in which the median of another such set of rounds is to be expected
// (repeat_interval). A cell fails when it failed once, and is skipped when no round measured it.
std::vector<Measurement> over_rounds(const std::vector<std::vector<Measurement>>& rounds);

// Of the values of several rounds: as over_rounds makes them. One value has no interval.
Metric metric_over_rounds(const std::vector<double>& values, const std::string& unit);

// As many rounds as are asked for, else as `budget` seconds have room for; fewer than three would
// say nothing of spread, so then there is one.
int plan_rounds(double budget, int backends, std::optional<int> asked = {});

// How long each of the runs that are left may measure, of what is left of the budget but for what a
// run of that backend took last time beside measuring, such as to start. All have the same, but
// none less than it needs, so that a slow backend has what a fast one does not need. Where that is
// more than is left, a backend that left cases out has what it needs for one whole run first.
class RoundTime {
 public:
  struct Run {
    double seconds = 0, measuring = 0;  // of wall clock, and of that, as was dealt out
    double needs = 0;                   // for all its cases, as far as it knows
    bool whole = true;                  // it left none out for want of time
  };
  explicit RoundTime(double budget) : budget_(budget) {}
  // For the first of `runs`, the backends of those left, at `now` seconds since the start.
  double seconds_next(double now, std::span<const std::string> runs) const;
  void took(const std::string& backend, const Run& run);

 private:
  double left(double now, std::span<const std::string> runs) const;
  double scarce(std::span<const std::string> runs, const std::vector<double>& needs,
                double left) const;

  const double budget_;
  std::map<std::string, Run> last_;
  std::set<std::string> whole_;  // those that have had a whole run
};

}  // namespace howmany::reports
