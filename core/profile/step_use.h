// SPDX-License-Identifier: Apache-2.0
// Computes how the time of a step is used, from a recording. Pure functions.
//
// Rule. At every instant of a step, the time belongs to the first of these categories in which any
//   thread of the rank is: compute, optimizer, comm, copy, data. data counts only if the thread
//   that runs the steps waits for it. The rest is host.
// So the parts sum to the step exactly, and comm is the exposed communication (with the time that
// the rank waits for a slower peer).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/profile/recorder.h"

namespace howmany {

// In nanoseconds; total = compute + optimizer + comm + copy + data + host.
struct StepUse {
  int64_t start = 0, total = 0;
  int64_t compute = 0, optimizer = 0, comm = 0, copy = 0, data = 0, host = 0;
  int64_t hidden_comm = 0;  // concurrent with compute or optimizer, so not in any part
};

// Returns one StepUse per range named `step` of category step on the threads of `track`, in order.
// Ranges of that category inside a step are only containers. Throws Error if more than one thread
// of the track has steps.
std::vector<StepUse> step_uses(const Recording& recording, std::string_view step, int track = -1);

}  // namespace howmany
