// Collectives made of messages between ranks, where MPI's own nonblocking ones take up to three
// times as long: recursive doubling and binomial trees for short messages, a ring for long ones, in
// which every rank sends and receives at once (Thakur, Rabenseifner, Gropp 2005). The same bits on
// every rank. Each is one collective of the group and throws as its calls do.
#pragma once

#include <chrono>

#include "parallel/comm.h"
#include "parallel/comms/mpi_group.h"

namespace howmany {

// Bytes from which a ring, of more messages but shorter ones, is faster.
constexpr int64_t kRing = 16 << 10;

// `scratch` is for this alone and grows as needed; it is given to keep it from call to call.
void mpi_all_reduce(MpiGroup& group, Tensor& t, ReduceOp op, Tensor& scratch,
                    std::chrono::milliseconds timeout);

// A binomial tree: for two ranks, or for short messages.
void mpi_broadcast(MpiGroup& group, Tensor& t, int root, std::chrono::milliseconds timeout);

// A ring of size() - 1 messages: for two ranks, or for long messages.
void mpi_all_gather(MpiGroup& group, const Tensor& send, Tensor& receive,
                    std::chrono::milliseconds timeout);

// Dissemination (Hensgen, Finkel, Manber 1988): all leave it at nearly the same time, so that what
// is timed behind it does not include how long one waits for another.
void mpi_barrier(MpiGroup& group, std::chrono::milliseconds timeout);

}  // namespace howmany
