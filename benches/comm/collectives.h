// The collectives as backend_bench times them: buffers with a pattern whose sums are exact in every
// dtype, where the Comm's engine works, the call itself, and a check of every element. Bytes and
// bus factors are those of nccl-tests, so that figures can be compared. One object per rank, one
// thread each.
//
//   Collective op("all_reduce", Dtype::f32, 1 << 20, comm);
//   op.fill(0); op.run(); op.check(0);   // throws WrongData, the same on every rank
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm.h"

namespace howmany::benches {

// One line per operation: X(name, "what one call does").
#define HM_COLLECTIVES(X)                                                         \
  X(all_reduce, "every rank gets the sum")                                        \
  X(all_gather, "every rank gets every part")                                     \
  X(reduce_scatter, "every rank gets its part of the sum")                        \
  X(broadcast, "every rank gets rank 0's buffer")                                 \
  X(reduce, "rank 0 gets the sum")                                                \
  X(gather, "rank 0 gets every part")                                             \
  X(scatter, "every rank gets its part of rank 0's buffer")                       \
  X(all_to_all, "every rank gets one part from every rank")                       \
  X(send_recv, "half a round trip between the first rank and the last one")       \
  X(all_gather_in_place, "as all_gather, from within the buffer that is filled")  \
  X(reduce_scatter_in_place, "as reduce_scatter, into the buffer that is summed") \
  X(reduce_in_place, "as reduce, into the buffer that rank 0 sends")              \
  X(gather_in_place, "as gather, from within the buffer that is filled")          \
  X(scatter_in_place, "as scatter, into the buffer that is shared out")

std::vector<std::string_view> collective_names();
inline constexpr std::string_view kInPlace = "_in_place";  // how names of those end that are

// busbw = algbw * factor: the rate of the busiest link when each rank has one. Nothing for one
// rank, where no byte moves.
std::optional<double> bus_factor(std::string_view op, int ranks);
// Bytes of one call as counted: whole elements for every rank, at least one each.
int64_t counted_bytes(std::string_view op, Dtype dtype, int64_t bytes, int ranks);
// What all buffers of one rank take.
int64_t buffer_bytes(std::string_view op, int64_t bytes, int ranks);

struct WrongElement {
  std::string buffer;
  int64_t index = 0;
  double expected = 0, seen = 0;
};

class Collective {
 public:
  // Its buffers are at the Comm's home, or on a GPU from which the Comm takes them there and back.
  // Throws std::invalid_argument for an unknown op; send_recv needs two ranks.
  Collective(std::string_view op, Dtype dtype, int64_t bytes, Comm& comm)
      : Collective(op, dtype, bytes, comm, comm.native_device()) {}
  Collective(std::string_view op, Dtype dtype, int64_t bytes, Comm& comm, Device where);

  // The pattern of `round` in what is sent, and values that are never right in what is received.
  void fill(int round);
  // Values that any number of calls leaves as they are: zeros for sums in place, else fill(round).
  void fill_for_timing(int round);
  void run();
  // Of this rank, after fill(round) and one run(), or fill_for_timing(round) and any number.
  std::optional<WrongElement> first_wrong(int round) const;
  // Collective: throws WrongData naming rank, element and both values on every rank if any is
  // wrong.
  void check(int round);

  bool round_trip() const { return op_ == "send_recv"; }
  // What a call sends.
  Tensor& sending() { return send_; }
  // Where the result of a call is.
  Tensor& received() { return receive_ ? receive_ : send_; }

 private:
  double sent(int rank, int64_t index, int round) const;
  double summed(int64_t index, int round) const;
  bool receives() const;

  const std::string name_, op_;  // as asked for; without "_in_place"
  Comm& comm_;
  int64_t part_;    // elements of one rank's part
  int64_t period_;  // of the pattern
  bool zeros_ = false;
  Tensor send_, receive_;  // one is within the other, or receive_ empty, when it works in place
};

}  // namespace howmany::benches
