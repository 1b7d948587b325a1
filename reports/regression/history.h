// SPDX-License-Identifier: Apache-2.0
// Analyses a history of results: where a level changed and by which commits, drift, and flapping
// between two values. The numbers are ratios to a pinned anchor that was measured with each of
// them, so that the machine cancels. Deterministic. Values only; safe from any thread.
//
//   Series s{"matmul", "real_time", {{"c1", "", 0.99}, {"c2", "", 1.01}, ...}};
//   Finding f = analyse(s, {});        // f.status == Finding::Status::kStep, f.steps[0].first_bad
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace howmany::reports {

struct HistoryPoint {
  std::string commit, date;
  double ratio = 1;  // ratio to the anchor; positive
};

struct Series {
  std::string benchmark, metric;
  std::vector<HistoryPoint> points;  // oldest first
};

struct HistoryOptions {
  double alpha = 0.001;      // for the t-test of one change
  double min_effect = 0.02;  // smaller changes are not reported
  int min_points = 3;        // points per level
};

// The level changed after `last_good`, and at `first_bad` or before. Both are indices into the
// points. They are further apart if noise hides the exact commit.
struct LevelChange {
  size_t last_good = 0, first_bad = 0;
  double change = 0;  // of the median; 0.05 is 5 % more
  double p = 1;       // of the t-test between the two levels
};

struct Finding {
  enum class Status { kTooShort, kStable, kStep, kDrift, kFlapping };
  Status status = Status::kStable;
  std::vector<LevelChange> steps;  // oldest first
  double drift = 0;  // relative change from the first to the last point of the line, if drifting
  double level = 1;  // current level
};

const char* name_of(Finding::Status status);
Finding analyse(const Series& series, const HistoryOptions& options);

}  // namespace howmany::reports
