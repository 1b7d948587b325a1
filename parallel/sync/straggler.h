// SPDX-License-Identifier: Apache-2.0
// Finds the straggler: the rank whose own work per step takes longest. Own work is the step time
// minus the time waited for other ranks.
//
//   own.push_back(seconds - mode->report().waited_seconds);  // after each step
//   Straggler slowest = find_straggler(comm, own);
#pragma once

#include <vector>

#include "parallel/comm/comm.h"

namespace howmany {

struct Straggler {
  int rank = 0;
  double extra_seconds = 0;  // per step, above the median of the other ranks
};

// own_seconds: one value per rank, in rank order. Throws std::invalid_argument if it is empty.
// extra_seconds is 0 if there is one rank.
Straggler straggler_of(const std::vector<double>& own_seconds);
// own_seconds: one value per step of this rank; must not be empty. Compares the ranks' medians. The
// result is equal on all ranks. Collective.
Straggler find_straggler(Comm& comm, const std::vector<double>& own_seconds);

}  // namespace howmany
