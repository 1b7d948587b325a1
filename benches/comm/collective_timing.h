// SPDX-License-Identifier: Apache-2.0
// Times collectives by both usual conventions, and their overlap with computation. Every rank of
// `comm` calls with its own Collective. All ranks take the same decisions, because they use the
// same maxima over ranks.
#pragma once

#include "benches/comm/collectives.h"
#include "benches/common/timing.h"

namespace howmany::benches {

// The minimum duration of a case in seconds.
struct CaseCost {
  double fixed = 0;  // filling and checking, with the checked calls
  double call = 0;   // one timed call; several calls have one more to warm up
  double of(int calls) const { return fixed + call * (calls > 1 ? calls + 1 : 1); }
};

struct CollectiveTimes {
  Samples isolated;   // a barrier before each call: the latency of one call
  Samples pipelined;  // per call of a chain without barriers: throughput; empty if time lacked
  int chain = 0;      // calls in one chain
  CaseCost cost;      // equal on every rank
};

// Makes calls before the first case, because a newly started thread is slow at first. Collective.
void settle(Comm& comm);

// Host time in seconds between the barrier and a timed call, as between the calls of a training
// step. Gloo's threads must settle before the next call. torch_rank.py waits as long.
constexpr double kHostGap = 50e-6;

constexpr int kCallsForAnInterval = 7;  // a median needs at least six to have an interval

// Checks the data, warms up until the times are steady, times at least `least` calls and checks the
// data again. All this takes about `seconds` of wall clock. If that is too short and `least` is 1,
// the checked call is the only warm-up. Throws WrongData on every rank.
CollectiveTimes time_collective(Comm& comm, Collective& op, double seconds,
                                int least = kCallsForAnInterval);

struct OverlapTimes {
  double comm_alone = 0, comm_beside = 0;  // seconds of one all_reduce
  double gemm_alone = 0, gemm_beside = 0;  // seconds of the concurrent matrix products
  int gemms = 0;
  double hidden = 0;  // share of the shorter of the two that running both concurrently saves
};
// Runs an all_reduce of `bytes` on the Comm's own thread while this thread, or its GPU, multiplies
// matrices for about as long. The buffer and the matrices are on `where`. Times are medians over
// rounds of the maximum over ranks.
OverlapTimes time_overlap(Comm& comm, int64_t bytes, Device where, double seconds);

struct RankPaces {
  int slowest = 0;       // rank
  double seconds = 0;    // seconds of the slowest rank
  double of_others = 1;  // divided by the median of the other ranks
};
// Runs the same work on every rank concurrently and without communication: a matrix product on
// cores, a sum on a GPU. A rank that is slow here delays every collective. Requires two or more
// ranks. Collective.
RankPaces time_paces(Comm& comm, Device where);
RankPaces compare_paces(Comm& comm, double seconds);  // `seconds`: the time of this rank
}  // namespace howmany::benches
