// SPDX-License-Identifier: Apache-2.0
// Simulated ranks: Comms of a world of which only one rank, or some, exist as threads of this
// process. Nothing waits in real time: each rank has a clock (virtual_clock.h).
//
// Time. A call is complete at max(time of the call, end of the one before) + T(kind, bytes), where
//   T comes from a cost table. A call of several ranks that exist begins with the last of them. If
//   the table has core seconds, a call also takes that much from the rank's computing.
// Values. All-reduces and broadcasts change nothing. The other collectives copy this rank's part
//   for every rank. So shapes are right, values finite, and sums those of one rank. Ranks that
//   exist exchange true values. On meta devices there are none.
// Groups. Mesh makes groups of evenly spaced ranks; each has the times of its size and spacing.
// Messages. A message arrives T("send") after it was sent, or T("send_between") between nodes.
//   send() and receive() with a rank that does not exist throw.
// Devices. Host memory and meta; tensors on a GPU would be staged.
//
//   const Simulation world(costs);  // of 64 ranks
//   const std::unique_ptr<Comm> comm = world.join(0);
//   comm->all_reduce(grad);
//   world.take_log();  // one call
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parallel/comm/comm.h"
#include "parallel/comm/virtual_clock.h"

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
  // FLOP that a device computes while it moves a byte of its memory. 0: not known.
  double flop_per_byte = 0;
  // On meta devices, a reduce-scatter takes a copy of its input, as that of `gloo` does.
  bool scatter_takes_copy = false;

  // T. Linear between two sizes, in proportion above the largest. Throws std::out_of_range if there
  // are no points of that kind or group.
  double seconds(const std::string& kind, double bytes, EvenGroup group) const;
};

struct SimulatedCall {
  std::string kind;  // of CostTable::Points
  double bytes = 0;
  EvenGroup group;
};

// The timeout of a call. Other ranks compute meanwhile.
constexpr std::chrono::hours kSimulationTimeout(1);

// Thread-safe.
class Simulation {
 public:
  explicit Simulation(CostTable costs);
  ~Simulation();

  const CostTable& costs() const;
  // Returns the Comm of that rank, of which no other rank exists. With a table without times, calls
  // with tensors of meta devices are not made.
  std::unique_ptr<Comm> join(int rank, std::shared_ptr<VirtualClock> clock = nullptr) const;
  // Returns the Comms of those ranks, ascending, for a thread each.
  std::vector<std::unique_ptr<Comm>> join(
      const std::vector<int>& ranks,
      const std::vector<std::shared_ptr<VirtualClock>>& clocks) const;
  // Returns the completed collectives since the last time, of all Comms.
  std::vector<SimulatedCall> take_log() const;

 private:
  struct State;
  class Engine;
  std::shared_ptr<State> state_;
};

}  // namespace howmany
