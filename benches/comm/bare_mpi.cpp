// SPDX-License-Identifier: Apache-2.0
#include <mpi.h>

#include "benches/comm/bare.h"

namespace howmany::benches {
namespace {

// Calls as in Intel MPI Benchmarks and the OSU micro-benchmarks.
class Blocking : public Bare {
 public:
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void all_reduce(float* data, size_t count) override {
    MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
  void broadcast(float* data, size_t count) override {
    MPI_Bcast(data, static_cast<int>(count), MPI_FLOAT, 0, MPI_COMM_WORLD);
  }
  void all_gather(const float* mine, float* all, size_t count_each) override {
    const int n = static_cast<int>(count_each);
    MPI_Allgather(mine, n, MPI_FLOAT, all, n, MPI_FLOAT, MPI_COMM_WORLD);
  }
};

}  // namespace

// The Comm has initialized MPI.
std::unique_ptr<Bare> bare_mpi(Comm&) { return std::make_unique<Blocking>(); }

}  // namespace howmany::benches
