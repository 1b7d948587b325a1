// One trace of all processes of a group: whose clock is how far from rank 0's, and what each
// recorded, brought to rank 0. Every function is collective.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/profile/recorder.h"
#include "parallel/comm.h"

namespace howmany::benches {

// This rank's clock reads `ahead` more than rank 0's, give or take `within`; both in ns. Found by
// the moments at which the ranks leave a barrier: no rank leaves before the last one came, so two
// clocks differ by what they say then, give or take how long the barrier took. Clocks that agree so
// well are taken for one, as that of a host is: then both are 0.
struct ClockOffset {
  int64_t ahead = 0, within = 0;
};
ClockOffset clock_offset(Comm& comm, const std::function<int64_t()>& now = profile_clock_ns);

// Whether this rank is the first of its process, whose recorder all its threads share.
bool leads_process(Comm& comm);

int64_t least_of(Comm& comm, int64_t value);
int64_t sum_of(Comm& comm, int64_t value);

// take(bytes) on rank 0 for each rank that has some, in the order of ranks and as they come: what
// was taken before a rank is lost stays.
void bring_to_rank_0(Comm& comm, const std::string& bytes,
                     const std::function<void(const std::string&)>& take);

}  // namespace howmany::benches
