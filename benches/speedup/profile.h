// Where a step's time goes, from a few more steps after the timed ones.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "parallel/comm.h"

namespace howmany::benches {

struct ProfileOptions {
  std::string file;   // the trace, appended to; empty: no profile
  std::string group;  // its name there
  bool gpus = false;  // also what the GPUs do
};

// Steps with the recorder off, on and off again, as many of each as half a second holds. What
// rank 0 of `comm` did becomes the result (empty elsewhere): medians over the steps of the parts of
// a StepUse as profile_compute_s and so on, profile_step_s, their number profile_steps, what
// recording cost as profile_cost_fraction of a step, and what was left of that afterwards as
// profile_after_fraction; of its GPUs the parts of a GpuUse as profile_gpu_compute_s and so on, and
// the records that were lost or refused; of all ranks profile_dropped_spans, what there was no room
// for. Rank 0 appends to the file the ranges of every rank and thread and what their GPUs did: 256
// MiB at most, ranks keeping their first steps where that is too little. GPUs that cannot be
// watched become a line on stderr. Collective. Throws Error when the file cannot be written; what
// was written before a rank is lost stays.
std::map<std::string, double> profile_steps(Comm& comm, double step_seconds,
                                            const std::function<void()>& step,
                                            const ProfileOptions& options);

}  // namespace howmany::benches
