// SPDX-License-Identifier: Apache-2.0
// Stores every launch of a gate as JSON Lines, so that results survive a crash and other rules can
// be applied later. Values only; a TraceFile has one writer.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "reports/regression/metric.h"
#include "reports/regression/suite.h"

namespace howmany::reports {

// One process: all repetitions of every benchmark and metric. Times in seconds.
struct Launch {
  int64_t block = 0;
  std::string arm;       // "base", "candidate", ...
  int64_t position = 0;  // index within the block
  double wall_seconds = 0;
  std::map<std::string, std::map<std::string, std::vector<double>>> values;
};

class TraceFile {
 public:
  explicit TraceFile(std::string path);  // opens for appending
  void add(const Launch& launch);        // throws std::runtime_error if writing fails

 private:
  std::string path_;
  std::ofstream file_;
};

// Omits an incomplete last line. Throws InputError that names file and line for other errors.
std::vector<Launch> trace_from_text(const std::string& text, const std::string& source);
// Returns the launches of one arm as a suite. A sample is the best repetition of a launch, or the
// median if the metric has no better direction. Its index is the block, which pairs suites of one
// trace.
Suite suite_of(const std::vector<Launch>& launches, const std::string& arm,
               const MetricKinds& kinds = {});
Launch launch_of(const Suite& suite);  // converts the results of one process
// Returns the samples of blocks [first, last).
Suite blocks_of(const Suite& suite, int64_t first, int64_t last);
// Returns Google Benchmark JSON of a suite, which `howmany compare` pairs again.
std::string bench_json(const Suite& suite);

}  // namespace howmany::reports
