// SPDX-License-Identifier: Apache-2.0
// Combines the records of a script's ranks into one result. Values only; not tied to any thread.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benches/script/command.h"
#include "benches/script/record.h"

namespace howmany::benches {

// The timed steps of one run of a script, over its ranks.
struct ScriptSteps {
  std::vector<double> seconds;  // of each timed step or cycle, see step_times() in pace.h
  int64_t global_batch = 0;     // samples per step over all ranks: the median
  int ranks = 1;
  int processes = 1;     // that took steps; more than `ranks` if they form no group
  std::string parallel;  // single, ddp, fsdp, dtensor (tensor parallelism) or group
  std::string backend;   // of the process group; empty: none
  std::string device;    // "cpu" or "cuda"
  std::string torch;     // "2.13.0, NCCL 2.27.3"
  int64_t threads = 0;   // torch.get_num_threads() of rank 0; 0: unknown
  std::map<std::string, double> counters;  // the shares of a step, bytes, warm-up steps
  std::vector<std::string> flags;          // "data wait not visible"
  std::vector<LoggedStep> logged;          // of a rehearsal, as rank 0 ran them
  nlohmann::ordered_json why;              // see evidence.h; null: of a rehearsal
  nlohmann::ordered_json counted;          // operations of a step; null: of timed steps
};

// The ranks of a script's group, and how many of them are processes. A rehearsal has fewer. 0 and
// 0: as the records say.
struct Expected {
  int world = 1, processes = 1;
  bool any() const { return world == 0; }
};

// Reads the records in `folder` of a command that has ended. Throws Error with the reason if they
// hold no complete measurement.
ScriptSteps read_ranks(const std::string& folder, Expected expected, const ScriptEnd& ended);

// Reads the counted step of a command that has ended (ScriptCommand::counted_for). `seconds` has
// one member, the time of counting. Throws Error with the reason if nothing was counted.
ScriptSteps read_counted(const std::string& folder, const ScriptEnd& ended);

// Steps with one number of loader workers, over the ranks.
struct LoaderTurn {
  RankTurn turn;  // alone_samples_per_s: the sum over ranks; its other figures: the maximum
  std::vector<double> seconds;  // of each step, the maximum over ranks
  double samples = 0;           // of all these steps and ranks
  double stall_fraction = 0;    // share of a step that waits for data, mean over ranks
};
struct LoaderTurns {
  int ranks = 1;
  int64_t global_batch = 0;  // samples per step over all ranks: the median
  std::string device;        // "cpu" or "cuda"
  std::vector<LoaderTurn> turns;
};
// As read_ranks(), for a command run with WorkerTurns.
LoaderTurns read_turns(const std::string& folder, const ScriptEnd& ended);

}  // namespace howmany::benches
