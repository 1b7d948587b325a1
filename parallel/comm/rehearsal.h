// SPDX-License-Identifier: Apache-2.0
// A rehearsal: a Comm of N ranks of which only this one, or some, exist.
//
// Time. A call is complete at max(time of the call, end of the one before) + T(kind, bytes), where
//   T comes from a cost table. If the table has core seconds, the call first keeps a core busy for
//   that much CPU time.
// Values. All-reduces and broadcasts change nothing. The other collectives copy this rank's part
//   for every rank. So shapes are right, values finite, and sums those of one rank.
// Groups. Mesh makes groups of evenly spaced ranks; each has the times of its size and spacing.
// Turns. The ranks of a pipeline wait for each other, so all stages of one replica run here, in
//   turns on the devices at hand (turns.h). Their messages hold true values. A message arrives
//   T("send") after it was sent, or T("send_between") between nodes. The time of a step is the
//   latest clock of its ranks. Loaders run on between turns, so no wait for data is rehearsed.
// Refused. send() and receive() with a rank that does not exist.
// Devices. Host memory only; tensors on a GPU would be staged.
// Source. rehearsal.py of the PyTorch hook, which does the same for scripts.
//
//   Rehearsal rehearsal(costs);  // of 64 ranks
//   const std::unique_ptr<Comm> comm = rehearsal.join(0);
//   comm->all_reduce(grad);
//   rehearsal.take_log();  // one call
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "parallel/comm/comm.h"
#include "parallel/comm/turns.h"

namespace howmany {

// Ranks first, first + stride, first + 2 stride, ...
struct EvenGroup {
  int ranks = 1, stride = 1;
  auto operator<=>(const EvenGroup&) const = default;
};

struct CostTable {
  // all_reduce, reduce_scatter, all_gather, broadcast, send and send_between -> (bytes, seconds),
  // by bytes, not empty.
  // The bytes are those of the whole: the buffer of all-reduce and broadcast, the sum over ranks of
  // the others.
  using Points = std::map<std::string, std::vector<std::pair<double, double>>>;

  int world = 2;                            // number of ranks
  std::map<EvenGroup, Points> groups = {};  // {world, 1} is the world. Empty: nothing takes time
  int devices_per_node = 0;                 // consecutive ranks share a node; 0: all do
  double core_s_per_call = 0, core_s_per_byte = 0;
  // On meta devices, a reduce-scatter takes a copy of its input, as that of `gloo` does.
  bool scatter_takes_copy = false;

  // T. Linear between two sizes, in proportion above the largest. Throws std::out_of_range if there
  // are no points of that kind or group.
  double seconds(const std::string& kind, double bytes, EvenGroup group) const;
};

struct RehearsalState;  // engines/rehearsal_engine.h

// A call, in the order of the calls.
struct RehearsedCall {
  std::string kind;  // of CostTable::points
  double bytes = 0;
  EvenGroup group;
  Clock::time_point at;  // of the call
  double seconds = 0;    // T
  // When the caller began to wait for it; `at` if the call was blocking.
  std::optional<Clock::time_point> waited = {};
};

// The timeout of a call by a rank that takes turns. Other ranks compute meanwhile.
constexpr std::chrono::hours kTurnsTimeout(1);

// Thread-safe.
class Rehearsal {
 public:
  explicit Rehearsal(CostTable costs);
  ~Rehearsal();

  const CostTable& costs() const;
  // Returns the Comm of that rank. Several ranks may join, each with a log of its own only if each
  // has a Rehearsal of its own.
  std::unique_ptr<Comm> join(int rank) const;
  // Returns the Comms of those ranks, ascending, for a thread each. While a thread uses one or
  // computes, it holds its turn (Turn::Hold). Their calls are not logged.
  std::vector<std::unique_ptr<Comm>> join_in_turns(
      const std::vector<int>& ranks, const std::vector<std::shared_ptr<Turn>>& turns) const;
  // Returns the completed calls since the last time.
  std::vector<RehearsedCall> take_log();

 private:
  std::shared_ptr<RehearsalState> state_;
};

}  // namespace howmany
