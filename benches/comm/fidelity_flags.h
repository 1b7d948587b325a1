// SPDX-License-Identifier: Apache-2.0
// Command line of fidelity_bench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace howmany::benches {

struct FidelityFlags {
  std::string backend = "gloo", devices = "cpu:0,cpu:1";
  std::vector<std::string> ops = {"all_reduce", "all_gather", "broadcast"};
  std::vector<int64_t> bytes = {64, 256, 1024, 4096, 16'384, 65'536, 262'144, 1 << 20, 16 << 20};
  int rounds = 61;
  bool oversubscribe = false;
};

// Parses the command line into `flags` and returns the flags of Google Benchmark. Throws
// std::invalid_argument if a flag is bad, and CLI::Success after --help. Call it within
// run_program().
std::vector<std::string> parse_fidelity(int argc, char** argv, FidelityFlags& flags);

}  // namespace howmany::benches
