// Where a step's time goes, from what was recorded. Pure functions; see reports for what is made of
// it.
//
// At every instant of a step the first of these that any thread of the rank is in takes it:
// compute, optimizer, comm, copy; then data, if the thread that steps waits for it; host is the
// rest. So the parts add up to the step to the nanosecond, and comm is what no work of this rank
// hides (waiting for a slower peer included).
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
  int64_t hidden_comm = 0;  // beside compute or optimizer, so in none of the parts
};

// The ranges named `step` of category step on one thread of `track` are the steps, in order; ranges
// of that category inside them are only containers. Throws Error when threads of that track step at
// once: then it is not known whose step is asked for.
std::vector<StepUse> step_uses(const Recording& recording, std::string_view step, int track = -1);

}  // namespace howmany
