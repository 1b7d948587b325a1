// SPDX-License-Identifier: Apache-2.0
// Our dtypes and operations as MPI's. Thread-safe, once MPI has started.
#pragma once

#include "core/tensor/dtype.h"
#include "parallel/comm/comm.h"
#include "parallel/engines/mpi_process.h"

namespace howmany {

// Elements in one MPI call: counts are ints, and some MPI versions multiply them by the width.
constexpr int64_t kMaxElements = int64_t{1} << 28;

MPI_Datatype type_of(Dtype dtype);
// MPI's own sums, and its own maxima of integers. MPI cannot add bf16, and does not say which of a
// number and a NaN is the larger, where all ranks must agree: those are MPI_Op_create's, of
// combine.h.
MPI_Op op_of(Dtype dtype, ReduceOp op);

// `elements` of a dtype as a count and a type: more than one call takes are one element of a type
// made of blocks. It may go as soon as the call that uses it has started.
class Part {
 public:
  Part(Dtype dtype, int64_t elements);
  ~Part() {
    if (made_ != MPI_DATATYPE_NULL) MPI_Type_free(&made_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  int count;
  MPI_Datatype type;

 private:
  MPI_Datatype made_ = MPI_DATATYPE_NULL;
};

}  // namespace howmany
