// How long one collective takes, by both conventions in use, and what computing beside it costs.
// Every rank of `comm` calls with its own Collective; all take the same decisions, since they see
// the same maxima over ranks.
#pragma once

#include "benches/collectives.h"
#include "benches/support.h"

namespace howmany::benches {

struct CollectiveTimes {
  Samples isolated;   // a barrier before each call: what one call costs
  Samples pipelined;  // per call of a chain without barriers between: what a flow of them costs;
                      // empty when there was no time for it
  int chain = 0;      // calls in one chain
};

// Calls before the first case: a thread that was just started is slow for a while. Collective.
void settle(Comm& comm);

constexpr int kCallsForAnInterval = 7;  // fewer than six cannot bound a median

// Checks the data, warms up until steady, times for about `seconds` of wall clock but no fewer than
// `least` calls, and checks the data that the timed calls left. Throws WrongData on every rank.
CollectiveTimes time_collective(Comm& comm, Collective& op, double seconds,
                                int least = kCallsForAnInterval);
// For how many calls a case of so few must have time: with what checks, warm-up and filling take.
constexpr int calls_at_least(int least) { return least + 5; }

struct OverlapTimes {
  double comm_alone = 0, comm_beside = 0;  // seconds of one all_reduce
  double gemm_alone = 0, gemm_beside = 0;  // seconds of the matrix products that run beside it
  int gemms = 0;
  double hidden = 0;  // share of the shorter of the two that running both at once saves
};
// An all_reduce of `bytes` on the Comm's own thread while this thread multiplies matrices for about
// as long. Medians over rounds of the maximum over ranks.
OverlapTimes time_overlap(Comm& comm, int64_t bytes, double seconds);

}  // namespace howmany::benches
