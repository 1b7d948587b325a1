// What a history of results says: where a level changed and by which commits, what drifts, what
// flaps between two values. The numbers are ratios to a pinned anchor that was measured beside each
// of them, so that the machine cancels. Values only; safe from any thread.
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
  double ratio = 1;  // to the anchor, positive
};

struct Series {
  std::string benchmark, metric;
  std::vector<HistoryPoint> points;  // oldest first
};

struct HistoryOptions {
  double alpha = 0.001;      // of one search for a change
  double min_effect = 0.02;  // smaller changes of level are not told
  int min_points = 3;        // of a level
  int permutations = 1999;
  uint64_t seed = 1;
};

// The level changed after `last_good` and not later than `first_bad`; indices into the points. When
// noise hides the very commit, they are further apart.
struct LevelChange {
  size_t last_good = 0, first_bad = 0;
  double change = 0;  // of the median, 0.05 is 5 % more
  double p = 1;       // of a largest difference as large as this, by permutation
};

struct Finding {
  enum class Status { kTooShort, kStable, kStep, kDrift, kFlapping };
  Status status = Status::kStable;
  std::vector<LevelChange> steps;  // oldest first
  double drift = 0;                // from the first to the last point along the line, when drifting
  double level = 1;                // where it is now
};

const char* name_of(Finding::Status status);
Finding analyse(const Series& series, const HistoryOptions& options);

}  // namespace howmany::reports
