// Measures a plan: every configuration once per round, each run in a fresh bench process. One
// thread.
//
// Time budget. The first round ignores it.
// Files. All files of the folder are rewritten after each run, so an interrupted measurement keeps
//   its results.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/gpus/plan.h"
#include "reports/results/bench_file.h"
#include "reports/results/record.h"

namespace howmany::reports {

// One run of one configuration.
struct BenchRun {
  size_t configuration = 0;
  int round = 0;
  BenchRow row;        // row.error is the reason if it failed
  SampleLine samples;  // empty if it failed
};

struct Results {
  nlohmann::json context = nlohmann::json::object();  // of the first bench process
  std::vector<BenchRun> runs;
  bool interrupted = false;
  bool out_of_time = false;  // some rounds were skipped
  std::string usage_error;   // the bench's error line if it refused its arguments
};

constexpr const char* kBusyElsewhere = "busy_elsewhere_fraction";  // counter of a row, if known
constexpr double kRunTimeout = 120;
// Returns the seconds that a run may take beyond its timed ones, if `left` seconds of the time
// budget remain: twice `left`, between 30 s and kRunTimeout.
double timeout_within(double left);

struct MeasureOptions {
  std::string folder;
  // Seconds beyond the timed ones. If absent, timeout_within() applies; without a time budget,
  // kRunTimeout.
  std::optional<double> run_timeout;
  bool verbose = false;  // forward the bench's stderr
  // Called about five times a second and after each run. Times in seconds.
  struct Progress {
    size_t done = 0, all = 0;
    std::string what;
    double elapsed = 0, left = 0;
    const BenchRun* finished = nullptr;
  };
  std::function<void(const Progress&)> on_progress;
};

// Runs the bench's checks for every mode and backend at the largest number of devices, without
// measuring. Throws InputError with the bench's message if it refuses one.
void check_with_bench(const Request& request);

// Continues from `results` and skips runs that succeeded. Throws InputError if a file of the folder
// cannot be written.
void measure(const Plan& plan, const MeasureOptions& options, Results& results);

// Write and read speedup.json and speedup.samples.jsonl in `folder`.
void write_results(const std::string& folder, const Plan& plan, const Results& results);
Results read_results(const std::string& folder, const Plan& plan);

// Returns one Measurement per configuration, in plan order: step time, rates, speedup, efficiency.
std::vector<Measurement> measurements(const Plan& plan, const Results& results);

}  // namespace howmany::reports
