// SPDX-License-Identifier: Apache-2.0
// Command line of transfer_bench.
#pragma once

#include <string>
#include <vector>

#include "benches/transfer/cases.h"

namespace howmany::benches {

struct TransferBenchFlags : TransferFlags {
  std::string device_list;
  double budget_seconds = 20;
  std::string samples;
  bool list = false;
};

// Parses the command line into `flags` and returns the flags of Google Benchmark. Throws
// std::invalid_argument if a flag is bad, and CLI::Success after --help. Call it within
// run_program().
std::vector<std::string> parse_transfer(int argc, char** argv, TransferBenchFlags& flags);

}  // namespace howmany::benches
