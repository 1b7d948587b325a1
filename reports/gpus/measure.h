// Measuring a plan: every configuration once per round, in the first whatever the time budget, each
// in a fresh bench process, the files of the folder brought up to date after each, so that whatever
// ends us, what was measured is kept. One thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/gpus/plan.h"
#include "reports/results/bench_file.h"
#include "reports/results/record.h"

namespace howmany::reports {

// One configuration measured once.
struct BenchRun {
  size_t configuration = 0;
  int round = 0;
  BenchRow row;        // row.error tells why it failed
  SampleLine samples;  // empty when it failed
};

struct Results {
  nlohmann::json context = nlohmann::json::object();  // of the first bench
  std::vector<BenchRun> runs;
  bool interrupted = false;
  bool out_of_time = false;  // rounds were left out
  std::string usage_error;   // the bench's own line, when it refused its arguments
};

constexpr const char* kBusyElsewhere = "busy_elsewhere_fraction";  // counter of a row, if known
constexpr double kRunTimeout = 120;
// Seconds that a run may take beyond its timed ones when `left` of a time budget remain: twice
// that, and at least what starting, building and checking a model may take.
double timeout_within(double left);

struct MeasureOptions {
  std::string folder;
  // Beyond the timed seconds; else of kRunTimeout what the time budget leaves.
  std::optional<double> run_timeout;
  bool verbose = false;  // the bench's stderr goes to ours
  // About five times a second and after each run: done of all, what runs, elapsed, left (seconds).
  struct Progress {
    size_t done = 0, all = 0;
    std::string what;
    double elapsed = 0, left = 0;
    const BenchRun* finished = nullptr;
  };
  std::function<void(const Progress&)> on_progress;
};

// Has the bench check every mode and backend at the largest number of devices, without measuring:
// its line on what it refuses comes as an InputError before anything runs.
void check_with_bench(const Request& request);

// Goes on from `results`, skipping what succeeded there. Throws InputError when a file of the
// folder cannot be written.
void measure(const Plan& plan, const MeasureOptions& options, Results& results);

// speedup.json and speedup.samples.jsonl of the folder.
void write_results(const std::string& folder, const Plan& plan, const Results& results);
Results read_results(const std::string& folder, const Plan& plan);

// One Measurement per configuration, in plan order: step time, rates, speedup, efficiency.
std::vector<Measurement> measurements(const Plan& plan, const Results& results);

}  // namespace howmany::reports
