// SPDX-License-Identifier: Apache-2.0
// Command line of core_bench.
#pragma once

#include <string>
#include <vector>

#include "benches/common/timing.h"
#include "core/tensor/precision.h"

namespace howmany::benches {

struct CoreFlags {
  TimingOptions timing;
  std::string samples, device;
  Precision precision = Precision::f32;
};

// Parses the command line, as parse() of program.h does.
std::vector<std::string> parse_core(int argc, char** argv, CoreFlags& options);

}  // namespace howmany::benches
