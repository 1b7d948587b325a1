// SPDX-License-Identifier: Apache-2.0
// Measured numbers of loader workers, how they compare, and all facts that determine the answer.
// Points with an error or without turns never win. Values only; not tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/statistics.h"
#include "reports/results/efficiency.h"
#include "reports/results/record.h"
#include "reports/workers/bounds.h"

namespace howmany::reports {

// A number of workers. The numbers take turns in rounds. In a round, each has at most one turn.
struct WorkersPoint {
  int workers = 0;
  bool own = false;             // the script's own number
  std::map<int, double> rates;  // samples/s of all ranks together, by round
  std::vector<double> stalls;   // share of the time that training waits for data, one per turn
  double alone = kNaN;          // samples/s without training; NaN: not measured, as below
  double wait_p95_s = kNaN, first_batch_s = kNaN, bytes_per_worker = kNaN;
  std::string error;  // reason if a turn failed

  int turns() const { return static_cast<int>(rates.size()); }
  bool counts() const { return error.empty() && !rates.empty(); }
};
using WorkersPoints = std::vector<WorkersPoint>;  // by workers

struct WorkersFacts {
  LoaderDemand asked;
  std::string demand_from;  // "--samples-per-second", "resnet18 here"; empty: no demand
  double max_stall = 0.01;
  std::string as = "threads";  // "threads", "processes", "pytorch", or "script": the user's own
  std::string script;          // its name; empty: loader_bench
  bool gpu = false;            // the script trains on one
  std::vector<int> wanted;     // only these are measured; empty: the search decides
  double cores = 1;            // usable
  double sample_bytes = 0;     // 0: unknown
  std::vector<WorkerBound> bounds;
  WorkersPoints points;             // with a demand, measured at that demand
  std::vector<int> left_out;        // numbers that the script's run left out
  std::optional<double> cold_rate;  // samples/s of all devices, files not in memory
  int cold_workers = 0;
  double looked_at = 0;       // number of files checked
  double bad = 0;             // unreadable files among these
  std::string first_bad;      // "cat/7.jpg: not a JPEG"
  std::string data_notes;     // "1 link left out"; empty: none
  bool undecided = false;     // the time did not suffice for the next numbers
  double enough_seconds = 0;  // budget that would probably suffice; 0: unknown
  std::string stopped;        // reason if it ended early: "it was interrupted"
  double busy_elsewhere = 0;  // share of the cores used by other programs, largest of a run

  bool has_demand() const { return asked.demand > 0; }
  bool trains() const { return as == "script"; }
  // The share of waiting means something only if something else takes time.
  bool shows_stall() const { return trains() || has_demand(); }
};

constexpr double kNoticeable = 1.05;  // noticeable factor of a rate
constexpr int kMinTurns = 3;          // of each number that can win, for a certain answer

// Returns the point of that number. Adds it if it is missing.
WorkersPoint& point_at(WorkersPoints& points, int workers);
// Returns the point of that number, or nullptr.
const WorkersPoint* find_point(const WorkersPoints& points, int workers);
// Returns the first round that no point has.
int next_round(const WorkersPoints& points);
// Return the median of the turns. The interval is where the median of as many new turns is expected
// (metric_over_rounds()). NaN without turns.
Metric rate_of(const WorkersPoint& point);
Metric stall_of(const WorkersPoint& point);

// Returns how many times as fast `point` is as `than`. The ratios of their common rounds decide,
// because the speed of a shared machine changes between rounds. Without a common round, a third
// point that shares rounds with both links them. Without one, there is no interval.
Estimate gain(const WorkersPoints& points, const WorkersPoint& point, const WorkersPoint& than);
// Returns the fastest point, or nullptr.
const WorkersPoint* best_of(const WorkersPoints& points);
// Returns the fewest workers that reach 98 % of `best`. A number that reaches 95 % suffices unless
// its interval excludes 98 %, and without an interval 85 %: more workers must be shown to pay.
const WorkersPoint& fewest_near(const WorkersPoints& points, const WorkersPoint& best);
// Returns the answer so far: the fewest workers that meet the demand (a median stall of at most
// max_stall). Without one, or if none does, the fewest near the best rate. nullptr if nothing was
// measured.
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
