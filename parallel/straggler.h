// Whom the other ranks wait for: the rank whose own work in a step takes longest. Its own work is
// what the step took less its waiting for other ranks.
//
//   own.push_back(seconds - mode->report().waited_seconds);  // after each step
//   Straggler slowest = find_straggler(comm, own);
#pragma once

#include <vector>

#include "parallel/comm.h"

namespace howmany {

struct Straggler {
  int rank = 0;
  double extra_seconds = 0;  // in a step, beyond the median of the others
};

// From each rank's seconds, in rank order; not empty. A rank that is alone has nothing extra.
Straggler straggler_of(const std::vector<double>& own_seconds);
// By each rank's median step; not empty. The same on every rank. Collective.
Straggler find_straggler(Comm& comm, const std::vector<double>& own_seconds);

}  // namespace howmany
