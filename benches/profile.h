// Where a step's time goes, from a few more steps after the timed ones.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "parallel/comm.h"

namespace howmany::benches {

// Steps with the recorder off, on and off again, as many of each as half a second holds. What rank
// 0 of `comm` did becomes the result (empty elsewhere): medians over the steps of the parts of a
// StepUse as profile_compute_s and so on, profile_step_s, their number profile_steps, what
// recording cost as profile_cost_fraction of a step, what was left of that afterwards as
// profile_after_fraction, and profile_dropped_spans. The ranges of every thread of rank 0's process
// are appended to `file` as a group of that name. Collective. Throws Error when the file cannot be
// written.
std::map<std::string, double> profile_steps(Comm& comm, double step_seconds,
                                            const std::function<void()>& step,
                                            const std::string& file, const std::string& group);

}  // namespace howmany::benches
