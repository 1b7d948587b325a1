// SPDX-License-Identifier: Apache-2.0
// Profiles a few more steps after the timed ones.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "parallel/comm/comm.h"

namespace howmany::benches {

struct ProfileOptions {
  std::string file;   // of the trace, appended to; empty: no profile
  std::string group;  // name of the group in the trace
  bool gpus = false;  // also record GPU activity
};

// Runs steps with the recorder off, on and off again, each for about half a second. Collective.
//
// Result. Rank 0 returns counters; other ranks return none. Times are medians over its steps.
//   profile_step_s, profile_compute_s, ...: the step and the parts of a StepUse
//   profile_gpu_compute_s, ...: the parts of a GpuUse, and the lost or refused GPU records
//   profile_steps: their number
//   profile_cost_fraction: cost of recording, as a fraction of a step
//   profile_after_fraction: slowdown that remained after recording
//   profile_dropped_spans: spans of all ranks that did not fit
// Trace. Rank 0 appends the ranges of all ranks and threads and their GPU activity to the file, at
//   most 256 MiB. If that is too little, each rank keeps its first steps.
// Failure. Throws Error if the file cannot be written. If a rank is lost, the parts already written
//   stay. If a GPU cannot be profiled, prints one line on stderr.
std::map<std::string, double> profile_steps(Comm& comm, double step_seconds,
                                            const std::function<void()>& step,
                                            const ProfileOptions& options);

}  // namespace howmany::benches
