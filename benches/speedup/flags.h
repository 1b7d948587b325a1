// SPDX-License-Identifier: Apache-2.0
// Command line of speedup_bench.
#pragma once

#include <string>
#include <vector>

#include "benches/common/timing.h"
#include "benches/common/workload.h"

namespace howmany::benches {

struct SpeedupFlags {
  std::vector<std::string> models = {"mlp", "resnet18"}, modes, backends;
  std::string devices, samples, trace;
  std::vector<int> counts;
  int64_t batch_per_device = 0, global_batch = 0;
  TimingOptions timing;
  Workload work;  // common to all cases
  bool list = false, graph_gain = false;
};

// Parses the command line, as parse() of program.h does.
std::vector<std::string> parse_speedup(int argc, char** argv, SpeedupFlags& flags);

}  // namespace howmany::benches
