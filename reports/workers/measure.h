// The runs of loader_bench behind `howmany workers`; every file of the folder is whole after each
// run. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reports/workers/command.h"
#include "reports/workers/rows.h"

namespace howmany::reports {

// Everything loader_bench told in this run.
struct LoaderResults {
  nlohmann::json context = nlohmann::json::object();
  std::vector<BenchRow> rows;
  std::vector<SampleLine> samples;
  bool interrupted = false, out_of_time = false;
};

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
  double busy_elsewhere() const;  // the largest during a run that was kept; 0 if none is known

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace howmany::reports
