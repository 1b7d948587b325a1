// How long one collective takes, by both conventions in use, and what computing beside it costs.
// Every rank of `comm` calls with its own Collective; all take the same decisions, since they see
// the same maxima over ranks.
#pragma once

#include "benches/comm/collectives.h"
#include "benches/common/timing.h"

namespace howmany::benches {

// Seconds that a case takes at the least.
struct CaseCost {
  double fixed = 0;  // to fill and to check, with the calls that are checked
  double call = 0;   // each of those that are timed; where there are several, one more warms up
  double of(int calls) const { return fixed + call * (calls > 1 ? calls + 1 : 1); }
};

struct CollectiveTimes {
  Samples isolated;   // a barrier before each call: what one call costs
  Samples pipelined;  // per call of a chain without barriers between: what a flow of them costs;
                      // empty when there was no time for it
  int chain = 0;      // calls in one chain
  CaseCost cost;      // the same on every rank
};

// Calls before the first case: a thread that was just started is slow for a while. Collective.
void settle(Comm& comm);

constexpr int kCallsForAnInterval = 7;  // fewer than six cannot bound a median

// Checks the data, warms up until steady, times calls, no fewer than `least`, and checks the data
// that they left and one more call: all in about `seconds` of wall clock. Where that is too little
// and `least` is one, the call that was checked is all that warms up. Throws WrongData on every
// rank.
CollectiveTimes time_collective(Comm& comm, Collective& op, double seconds,
                                int least = kCallsForAnInterval);

struct OverlapTimes {
  double comm_alone = 0, comm_beside = 0;  // seconds of one all_reduce
  double gemm_alone = 0, gemm_beside = 0;  // seconds of the matrix products that run beside it
  int gemms = 0;
  double hidden = 0;  // share of the shorter of the two that running both at once saves
};
// An all_reduce of `bytes` on the Comm's own thread while this thread, or its GPU, multiplies
// matrices for about as long; the buffer and the matrices are on `where`. Medians over rounds of
// the maximum over ranks.
OverlapTimes time_overlap(Comm& comm, int64_t bytes, Device where, double seconds);

struct RankPaces {
  int slowest = 0;       // rank
  double seconds = 0;    // that it takes for the work
  double of_others = 1;  // over the median of the others
};
// The same work on every rank (a matrix product on cores, a sum on a GPU), all at the same time and
// nobody waiting for another: who is slow at it holds the others up in every collective. Of two
// ranks or more; collective.
RankPaces time_paces(Comm& comm, Device where);
RankPaces compare_paces(Comm& comm, double seconds);  // what this rank took
// Messages between neighbours of a ring, no rank with two of them at once. Of a rank the faster of
// its two links counts: who has only slow ones is behind a slow link itself. Neighbours are `apart`
// ranks from each other, so that with as many on each host they are on different ones. The ring is
// of three or more; collective.
RankPaces time_links(Comm& comm, int apart, Device where);

}  // namespace howmany::benches
