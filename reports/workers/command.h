// `howmany workers`: how many loader workers feed these devices from these files on this machine.
// Limits, short probes, a prediction, then runs of loader_bench only where the answer is decided;
// every file of the folder is whole after each run. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reports/workers/advise.h"

namespace CLI {
class App;
}

namespace howmany {

struct WorkersArguments {
  std::string data = "synthetic", workers = "auto", out, as = "threads", emit_check;
  std::optional<std::string> model, from, samples_per_second;
  std::string device = "cpu:0";                  // on which --model trains
  std::string python = "python3", start_method;  // of --as pytorch; "none": Python is left out
  int devices = 1, prefetch = 2;
  int64_t batch = 64, image_size = 224, seed = 1;
  double time_budget = 60, stall_percent = 1;
  bool json = false, quiet = false, no_color = false, verbose = false;
};

// Adds the subcommand; when it is called, `code` becomes its exit code.
void add_workers(CLI::App& app, int& code);
// Returns 0, or 3 when a measurement failed or was interrupted. Throws InputError.
int run_workers(const WorkersArguments& arguments);

// Everything loader_bench told in this run.
struct LoaderResults {
  nlohmann::json context = nlohmann::json::object();
  std::vector<BenchRow> rows;
  std::vector<SampleLine> samples;
  bool interrupted = false, out_of_time = false;
};

// "auto" is empty. Throws InputError for what is no list of numbers from 0 to 1024.
std::vector<int> workers_from(const std::string& text);

// Runs loader_bench for what the facts lack and adds it: limits, probes, points, the cold rate.
class LoaderMeasuring {
 public:
  LoaderMeasuring(const WorkersArguments& arguments, std::string folder);
  ~LoaderMeasuring();

  LoaderLimits limits();
  // Throws InputError when the bench refuses its arguments, as it does for a folder without images.
  void probe(WorkersFacts& facts);
  // From then on samples and workers of the bench take as long as Python's.
  void add_python(WorkersFacts& facts, PythonCost cost);
  // Returns whether there was time for all that decide.
  bool measure_points(WorkersFacts& facts);
  void measure_cold(WorkersFacts& facts, int workers);
  // One worker and so many, where nvJPEG can decode what they read.
  void measure_on_gpu(WorkersFacts& facts, int workers);
  const LoaderResults& results() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace howmany
