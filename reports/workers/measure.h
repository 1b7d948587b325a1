// SPDX-License-Identifier: Apache-2.0
// Runs loader_bench for `howmany workers`. Every file of the folder is complete after each run. One
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reports/workers/command.h"
#include "reports/workers/rows.h"

namespace howmany::reports {

// All results of loader_bench in this run.
struct LoaderResults {
  nlohmann::json context = nlohmann::json::object();
  std::vector<BenchRow> rows;
  std::vector<SampleLine> samples;
  bool interrupted = false, out_of_time = false;
};

// Writes loader.json and loader.samples.jsonl.
void write_loader_files(const std::string& folder, const LoaderResults& results);

// Runs loader_bench and adds its results to the facts: limits, probes, points, the cold rate.
class LoaderMeasuring {
 public:
  LoaderMeasuring(const WorkersArguments& arguments, std::string folder);
  ~LoaderMeasuring();

  LoaderLimits limits();
  // Throws InputError if the bench refuses its arguments, for example a folder without images.
  void probe(WorkersFacts& facts);
  // Returns true if all deciding numbers were measured in time.
  bool measure_points(WorkersFacts& facts);
  void measure_cold(WorkersFacts& facts, int workers);
  const LoaderResults& results() const;
  double busy_elsewhere() const;  // the largest share during a kept run; 0 if unknown

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace howmany::reports
