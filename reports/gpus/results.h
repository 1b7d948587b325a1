// SPDX-License-Identifier: Apache-2.0
// The runs of a plan, and the files that keep them. One thread.
#pragma once

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
  double whole_seconds = 0;  // that every round needs, if out of time
  std::string usage_error;   // the bench's error line if it refused its arguments
};

// Returns the run that failed first, or nullptr.
const BenchRun* first_failed(const Results& results);

// Write and read speedup.json and speedup.samples.jsonl in `folder`.
void write_results(const std::string& folder, const Plan& plan, const Results& results);
Results read_results(const std::string& folder, const Plan& plan);

// Returns one Measurement per configuration, in plan order: step time, rates, speedup, efficiency.
std::vector<Measurement> measurements(const Plan& plan, const Results& results);

}  // namespace howmany::reports
