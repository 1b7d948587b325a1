// SPDX-License-Identifier: Apache-2.0
// Finds out how a script is started on several devices, by starting it:
//   1. as it is, or without its launcher, on all devices: does it form a group, of how many ranks?
//   2. with two ranks, under its own launcher, else under torchrun or `fabric run`
//   3. with one rank there, if the group is formed only there
//   4. with the ranks of two nodes, if there are several
// Each start ends after a few steps.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/results/scratch.h"
#include "reports/script/script.h"

namespace howmany::reports {

// The result of one start.
struct Start {
  bool ok = false;
  std::string why;     // it is not ok: the script's own reason
  int world = 1;       // ranks of its group; 1 without one
  int processes = 1;   // that trained
  bool group = false;  // it formed a process group
  bool ddp = false;    // with a model in DistributedDataParallel or FSDP
  std::string python;  // path of the Python that trained
  std::string uses;    // lightning.fabric, DistributedDataParallel: as the hook saw
  double seconds = 0;  // until its end
};

struct LadderOptions {
  std::vector<std::string> devices;
  int cores_per_device = 1;
  bool rehearses = false;  // it will run as one of more ranks than there are devices
  Nodes nodes = {};        // several: the ranks of two are tried
  // Called before that, with the path of the script's Python. Returns variables that ranks on
  // several nodes need.
  std::function<std::vector<std::string>(const std::string&)> check_nodes = {};
  std::function<void(const std::string&)> report;  // one line for people
};

// Starts the script and fills in how it is measured: `words`, `one`, `across`, `one_rank`, `alone`,
// `own_ranks`, `why_alone`, `why_one_node` and `start_seconds`. Returns false if it was
// interrupted. Throws InputError if script_bench refuses the command, and std::runtime_error with
// the script's own reason if it could not be started in any way.
bool find_start(Script& script, const LadderOptions& options, const BenchScratch& scratch);

}  // namespace howmany::reports
