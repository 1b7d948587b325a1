// From probes, bounds and measured points to one answer: the fewest loader workers that feed the
// devices, or that none can and what stops them. Only measured points win; predictions choose what
// is measured next and are told as predictions. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/record.h"
#include "reports/workers_bounds.h"
#include "reports/workers_model.h"
#include "reports/workers_python.h"

namespace howmany {

// One number of workers, measured in one run or more; rates are of all devices together.
struct WorkersPoint {
  int workers = 0;
  Metric rate;                  // samples/s as fast as batches come: the median of its runs
  std::vector<double> runs;     // samples/s of each
  std::optional<Metric> stall;  // share of the time waiting, when training at the demand
  double wait_p95_s = 0, wait_p99_s = 0, first_batch_s = 0, bytes_per_worker = 0;
  std::string error;  // it failed, if only once
};

// Keeps a run: of a new number as it is, else with the runs of that number. What a single run tells
// of itself (the stall, waiting, memory) stays the first one's.
void add_run(std::vector<WorkersPoint>& points, WorkersPoint run);

// Samples/s, less what luck may have added to so few runs: by one standard error, from how far the
// runs of the points differ and as single ones are known to. Numbers are compared by it.
double sure_rate(const WorkersPoint& point, const std::vector<WorkersPoint>& points);

struct WorkersFacts {
  LoaderDemand asked;
  std::string demand_from;  // "--samples-per-second", "resnet18 here"; empty: no demand
  double most_stall = 0.01;
  std::string as = "threads";
  std::vector<int> wanted;  // measured anyway; empty: as the search decides
  LoaderProbes probes;
  std::vector<WorkerBound> bounds;
  std::vector<WorkersPoint> points;
  std::optional<double> cold_rate;  // samples/s of all devices, files not in memory
  int cold_workers = 0;
  double files = 0;   // in the folder; 0: none
  PythonCost python;  // part of the probes and points when it was measured
};

// The number of workers to measure next; nothing when the answer is decided. First the predicted
// one, then the neighbour that decides: fewer while it suffices, more while it gains. Then, by
// turns, again those that may be the best: runs differ by more than such numbers do.
std::optional<int> next_trial(const WorkersFacts& facts);

struct WorkersLever {
  std::string what;
  double gain = 1;  // of the samples/s, predicted
};

struct WorkersAdvice {
  std::optional<int> recommended;
  bool feeds = false;   // the demand, within the stall; false without a demand
  bool certain = true;  // the interval leaves no doubt
  std::string because;  // one sentence
  std::string limit;    // "decoding on 2 cores"
  std::vector<std::string> notes;
  std::vector<WorkersLever> levers;  // best first
  std::string pytorch, slurm;        // lines to paste; empty without an answer
};
WorkersAdvice advise_workers(const WorkersFacts& facts);

// The member `workers` of the summary's answer, and the text made of it alone.
nlohmann::ordered_json to_json(const WorkersFacts& facts, const WorkersAdvice& advice);
// Throws InputError when the answer is not what to_json makes.
std::string render_workers(const nlohmann::json& answer, const std::string& source, bool color);

}  // namespace howmany
