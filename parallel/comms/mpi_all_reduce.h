// All-reduce by messages between ranks, where MPI's own nonblocking one takes two to three times as
// long: recursive doubling for short messages, a ring for long ones, in which every rank sends and
// receives at once (Thakur, Rabenseifner, Gropp 2005). The same bits on every rank. One collective
// of the group; throws as its calls do.
#pragma once

#include <chrono>

#include "parallel/comm.h"
#include "parallel/comms/mpi_group.h"

namespace howmany {

// `scratch` is for this alone and grows as needed; it is given to keep it from call to call.
void mpi_all_reduce(MpiGroup& group, Tensor& t, ReduceOp op, Tensor& scratch,
                    std::chrono::milliseconds timeout);

}  // namespace howmany
