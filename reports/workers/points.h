// SPDX-License-Identifier: Apache-2.0
// Measured numbers of loader workers, and all facts that determine the answer. Values only; not
// tied to any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/statistics.h"
#include "reports/results/record.h"
#include "reports/workers/bounds.h"
#include "reports/workers/model.h"

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
};
using WorkersPoints = std::vector<WorkersPoint>;  // by workers

// Returns the point of that number. Adds it if it is missing.
WorkersPoint& point_at(WorkersPoints& points, int workers);
// Returns the first round that no point has.
int next_round(const WorkersPoints& points);
// Return the median of the turns. The interval is where the median of as many new turns is expected
// (metric_over_rounds()). NaN without turns.
Metric rate_of(const WorkersPoint& point);
Metric stall_of(const WorkersPoint& point);

struct WorkersFacts {
  LoaderDemand asked;
  std::string demand_from;  // "--samples-per-second", "resnet18 here"; empty: no demand
  double most_stall = 0.01;
  std::string as = "threads";
  std::vector<int> wanted;  // only these are measured; empty: the search decides
  LoaderProbes probes;
  std::vector<WorkerBound> bounds;
  WorkersPoints points;             // with a demand, measured at that demand
  std::optional<double> cold_rate;  // samples/s of all devices, files not in memory
  int cold_workers = 0;
  double files = 0;           // number of files; 0: none
  double looked_at = 0;       // number of files checked
  double bad = 0;             // unreadable files among these
  std::string first_bad;      // "cat/7.jpg: not a JPEG"
  bool undecided = false;     // the time did not suffice for one turn of each number
  std::string why_none;       // reason if nothing was measured: why_unmeasurable()
  double busy_elsewhere = 0;  // share of the cores used by other programs, largest of a run
};

}  // namespace howmany::reports
