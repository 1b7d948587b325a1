// SPDX-License-Identifier: Apache-2.0
// A rehearsal: a Comm of N ranks of which only this one exists.
//
// Time. A call is complete at max(time of the call, end of the one before) + T(kind, bytes), where
//   T comes from a cost table. If the table has core seconds, the call first keeps a core busy for
//   that much CPU time.
// Values. All-reduces and broadcasts change nothing. The other collectives copy this rank's part
//   for every rank. So shapes are right, values finite, and sums those of one rank.
// Groups. Mesh makes groups of evenly spaced ranks; each has the times of its size and spacing.
// Refused. send() and receive(): what the other rank does decides what follows.
// Devices. Host memory only; tensors on a GPU would be staged.
// Source. rehearsal.py of the PyTorch hook, which does the same for scripts.
//
//   Rehearsal rehearsal(costs);  // of 64 ranks
//   const std::unique_ptr<Comm> comm = rehearsal.join(0);
//   comm->all_reduce(grad);
//   rehearsal.take_log();  // one call
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "parallel/comm.h"

namespace howmany {

// Ranks first, first + stride, first + 2 stride, ...
struct EvenGroup {
  int ranks = 1, stride = 1;
  auto operator<=>(const EvenGroup&) const = default;
};

struct CostTable {
  // all_reduce, reduce_scatter, all_gather and broadcast -> (bytes, seconds), by bytes, not empty.
  // The bytes are those of the whole: the buffer of all-reduce and broadcast, the sum over ranks of
  // the others.
  using Points = std::map<std::string, std::vector<std::pair<double, double>>>;

  int world = 2;                            // number of ranks
  std::map<EvenGroup, Points> groups = {};  // {world, 1} is the world. Empty: nothing takes time
  double core_s_per_call = 0, core_s_per_byte = 0;

  // T. Linear between two sizes, in proportion above the largest. Throws std::out_of_range if there
  // are no points of that kind or group.
  double seconds(const std::string& kind, double bytes, EvenGroup group) const;
};

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

// Thread-safe.
class Rehearsal {
 public:
  explicit Rehearsal(CostTable costs);
  ~Rehearsal();

  const CostTable& costs() const;
  // Returns the Comm of that rank. Several ranks may join, each with a log of its own only if each
  // has a Rehearsal of its own.
  std::unique_ptr<Comm> join(int rank) const;
  // Returns the completed calls since the last time.
  std::vector<RehearsedCall> take_log();

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace howmany
