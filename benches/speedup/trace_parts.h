// SPDX-License-Identifier: Apache-2.0
// Merges the traces of a group's processes on rank 0, with the offset of each clock from that of
// rank 0. Every function is collective.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/profile/recorder.h"
#include "parallel/comm/comm.h"

namespace howmany::benches {

// This rank's clock is `ahead` of rank 0's by this much, give or take `within`; both in ns. It is
// estimated when the ranks leave a barrier. No rank leaves before the last one enters, so the error
// is at most the duration of the barrier. If two clocks agree within it, they count as one clock,
// as on one host: then both values are 0.
struct ClockOffset {
  int64_t ahead = 0, within = 0;
};
ClockOffset clock_offset(Comm& comm, const std::function<int64_t()>& now = profile_clock_ns);

// Returns true if this rank is the first of its process. All threads of a process share its
// recorder.
bool leads_process(Comm& comm);

int64_t least_of(Comm& comm, int64_t value);
int64_t sum_of(Comm& comm, int64_t value);

// Calls take(bytes) on rank 0 for each rank with data, in rank order as the data arrive. If a rank
// is lost, the data taken before remain.
void bring_to_rank_0(Comm& comm, const std::string& bytes,
                     const std::function<void(const std::string&)>& take);

}  // namespace howmany::benches
