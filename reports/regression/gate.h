// `howmany gate`: is the candidate slower than the base? Both are measured now, in turns, a process
// at a time, and judged by rules.h. Results on stdout, progress on stderr; the exit codes of
// command.h. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/regression/command.h"

namespace howmany::reports {

struct GateArguments {
  std::string base, candidate;              // commands
  std::string base_build, candidate_build;  // or folders of built programs, and which of them
  std::vector<std::string> benches;
  std::string bench_args;
  int screen = 10, pairs = 40, repetitions = 3;
  double min_seconds = 0.01, time_budget = 300, run_timeout = 120;
  uint64_t seed = 1;
  bool plain = false, canary = true, shortcut = true, quiet = false;
  std::string out;
  JudgeArguments judge;

  bool self_test = false;
  int64_t blocks = 15000;  // of the self-test
};

int run_gate(const GateArguments& arguments);

}  // namespace howmany::reports
