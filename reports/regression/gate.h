// SPDX-License-Identifier: Apache-2.0
// `howmany gate` tests whether the candidate is slower than the base. It measures both now, with
// alternating processes, and judges by rules.h. Results go to stdout, progress to stderr. Exit
// codes: see command.h. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/regression/command.h"

namespace howmany::reports {

struct GateArguments {
  std::string base, candidate;                // commands to run
  std::string base_script, candidate_script;  // or training commands, run by script_bench
  std::string base_build, candidate_build;    // or folders of programs, and the programs to run
  std::vector<std::string> benches;
  std::string bench_args;
  int screen = 10, pairs = 40, repetitions = 3;
  double min_seconds = 0.01, time_budget = 300, run_timeout = 120;
  uint64_t seed = 1;
  bool plain = false, shortcut = true;
  std::string out;
  JudgeArguments judge;
};

int run_gate(const GateArguments& arguments);

}  // namespace howmany::reports
