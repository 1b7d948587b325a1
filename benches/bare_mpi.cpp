#include <mpi.h>

#include "benches/bare.h"

namespace howmany::benches {
namespace {

// As the OSU micro-benchmarks call it: a waiting rank polls without rest.
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

// The calls that our Comm makes, since only they can have a timeout; MPI has other algorithms for
// them.
class Nonblocking : public Bare {
 public:
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  void all_reduce(float* data, size_t count) override {
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, data, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  void broadcast(float* data, size_t count) override {
    MPI_Request request;
    MPI_Ibcast(data, static_cast<int>(count), MPI_FLOAT, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  void all_gather(const float* mine, float* all, size_t count_each) override {
    const int n = static_cast<int>(count_each);
    MPI_Request request;
    MPI_Iallgather(mine, n, MPI_FLOAT, all, n, MPI_FLOAT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
};

}  // namespace

// The Comm has started MPI.
std::vector<BareLoop> bare_mpi(Comm&) {
  std::vector<BareLoop> loops;
  loops.push_back({"nonblocking", std::make_unique<Nonblocking>()});
  loops.push_back({"blocking", std::make_unique<Blocking>()});
  return loops;
}

}  // namespace howmany::benches
