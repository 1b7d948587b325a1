// Every launch of a gate, a line each, so that what was measured survives whatever ends us and
// other rules can be tried on it later. JSON Lines; values only, except that a TraceFile is open
// for one writer.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "reports/regression/metric.h"
#include "reports/regression/suite.h"

namespace howmany::reports {

// One process: all repetitions of every benchmark and metric, times in seconds.
struct Launch {
  int64_t block = 0;
  std::string arm;       // "base", "candidate", ...
  int64_t position = 0;  // in the order of the block
  double wall_seconds = 0;
  std::map<std::string, std::map<std::string, std::vector<double>>> values;
};

class TraceFile {
 public:
  explicit TraceFile(std::string path);  // appends
  void add(const Launch& launch);        // throws std::runtime_error when it cannot be written

 private:
  std::string path_;
  std::ofstream file_;
};

// A last line that is cut off is left out. Throws InputError naming file and line for others.
std::vector<Launch> trace_from_text(const std::string& text, const std::string& source);
// The launches of one arm: a sample is the best repetition of a launch (the median of a metric that
// has no better), its index the block. Two suites of one trace are paired by their blocks.
Suite suite_of(const std::vector<Launch>& launches, const std::string& arm,
               const MetricKinds& kinds = {});
Launch launch_of(const Suite& suite);  // what one process gave
// The samples of blocks `first` to `last`, which is not included.
Suite blocks_of(const Suite& suite, int64_t first, int64_t last);
// Google Benchmark JSON of a suite, which `howmany compare` pairs again.
std::string bench_json(const Suite& suite);

}  // namespace howmany::reports
