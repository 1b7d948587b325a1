// SPDX-License-Identifier: Apache-2.0
// Command line of backend_bench.
#pragma once

#include <string>
#include <vector>

#include "benches/comm/cases.h"

namespace howmany::benches {

// Parses the command line into `flags` and returns the flags of Google Benchmark. Throws
// std::invalid_argument if a flag is bad, and CLI::Success after --help. Call it within
// run_program().
std::vector<std::string> parse_backend(int argc, char** argv, BackendFlags& flags);

}  // namespace howmany::benches
