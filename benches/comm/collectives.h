// SPDX-License-Identifier: Apache-2.0
// The collectives that backend_bench times. An object owns the buffers, makes the call and checks
// every element. The pattern of the buffers has exact sums in every dtype. Bytes and bus factors
// are those of nccl-tests, so figures are comparable. Each rank has its own object and uses it from
// one thread.
//
//   Collective op("all_reduce", Dtype::f32, 1 << 20, comm);
//   op.fill(0); op.run(); op.check(0);   // throws WrongData, the same on every rank
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/comm.h"

namespace howmany::benches {

// One line per operation: X(name, "description of one call").
#define HM_COLLECTIVES(X)                                   \
  X(all_reduce, "every rank gets the sum")                  \
  X(all_gather, "every rank gets every part")               \
  X(reduce_scatter, "every rank gets its part of the sum")  \
  X(broadcast, "every rank gets rank 0's buffer")           \
  X(reduce, "rank 0 gets the sum")                          \
  X(gather, "rank 0 gets every part")                       \
  X(scatter, "every rank gets its part of rank 0's buffer") \
  X(all_to_all, "every rank gets one part from every rank") \
  X(send_recv, "half a round trip between the first rank and the last one")

std::vector<std::string_view> collective_names();

// busbw = algbw * factor: the rate of the busiest link if each rank has one. Returns nullopt for
// one rank, which moves no bytes.
std::optional<double> bus_factor(std::string_view op, int ranks);
// Returns the bytes of one call as nccl-tests counts them: whole elements for every rank, at least
// one each.
int64_t counted_bytes(std::string_view op, Dtype dtype, int64_t bytes, int ranks);
// Returns the bytes of all buffers of one rank.
int64_t buffer_bytes(std::string_view op, int64_t bytes, int ranks);

struct WrongElement {
  std::string buffer;
  int64_t index = 0;
  double expected = 0, seen = 0;
};

class Collective {
 public:
  // The buffers are on the Comm's native device or on `where`; the Comm stages them if the two
  // differ. Throws std::invalid_argument if `op` is unknown, or if it is send_recv and there is one
  // rank.
  Collective(std::string_view op, Dtype dtype, int64_t bytes, Comm& comm)
      : Collective(op, dtype, bytes, comm, comm.native_device()) {}
  Collective(std::string_view op, Dtype dtype, int64_t bytes, Comm& comm, Device where);

  // Fills the send buffer with the pattern of `round`, and the receive buffer with a value that is
  // never correct.
  void fill(int round);
  // Fills with values that any number of calls leaves unchanged: zeros for all_reduce, else
  // fill(round).
  void fill_for_timing(int round);
  void run();
  // Returns the first wrong element of this rank. Requires fill(round) and one run(), or
  // fill_for_timing(round) and any number of runs.
  std::optional<WrongElement> first_wrong(int round) const;
  // Collective. If any rank has a wrong element, throws WrongData on every rank with the rank, the
  // element and both values.
  void check(int round);

  bool round_trip() const { return op_ == "send_recv"; }
  // The buffer that a call sends.
  Tensor& sending() { return send_; }
  // The buffer that holds the result of a call.
  Tensor& received() { return receive_ ? receive_ : send_; }

 private:
  double sent(int rank, int64_t index, int round) const;
  double summed(int64_t index, int round) const;
  bool receives() const;

  const std::string op_;
  Comm& comm_;
  int64_t part_;    // elements of one rank's part
  int64_t period_;  // of the pattern, in elements
  bool zeros_ = false;
  Tensor send_, receive_;  // receive_ is empty if the operation has one buffer
};

}  // namespace howmany::benches
