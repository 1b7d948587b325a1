// SPDX-License-Identifier: Apache-2.0
// Command line of script_bench.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "benches/script/command.h"

namespace howmany::benches {

struct ScriptFlags {
  ScriptCommand command;
  std::string name = "script";  // of the row
  std::string device_list = "cpu:0";
  int cores_per_device = 1;
  double run_timeout = 120;  // beyond the timed steps
  std::string samples;
};

// Parses the command line into `flags` and returns the flags of Google Benchmark. The words after
// "--" are the command. Throws std::invalid_argument if a flag is bad, and CLI::Success after
// --help. Call it within run_program().
std::vector<std::string> parse_script(int argc, char** argv, ScriptFlags& flags);

}  // namespace howmany::benches
