// SPDX-License-Identifier: Apache-2.0
// Reads what the hook recorded in each rank of a script (torch_hook/howmany_hook/record.py). The
// files are untrusted. Values only; not tied to any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "benches/script/command.h"

namespace howmany::benches {

// The timed steps of one run of a script, over its ranks.
struct ScriptSteps {
  std::vector<double> seconds;  // of each timed step, the maximum over ranks
  int64_t global_batch = 0;     // samples per step over all ranks: the median
  int ranks = 1;
  std::string parallel;  // single, ddp, dtensor (FSDP2, tensor parallelism) or group
  std::string backend;   // of the process group; empty: none
  int64_t threads = 0;   // torch.get_num_threads() of rank 0
  std::map<std::string, double> counters;  // the shares of a step, bytes, warm-up steps
  std::vector<std::string> flags;          // "data wait not visible"
};

// Reads the records in `folder` of a command that has ended. Throws Error with the reason if they
// hold no complete measurement.
ScriptSteps read_ranks(const std::string& folder, int devices, const ScriptEnd& ended);

}  // namespace howmany::benches
