// SPDX-License-Identifier: Apache-2.0
// The collectives of one library, called directly as its users call them. fidelity_bench compares a
// Comm over the library with them. Each library has one file and one line below. Every rank calls
// in the same order from one thread, and only while the Comm is idle.
#pragma once

#include <howmany_parts.h>

#include <memory>

#include "parallel/comm/comm.h"

namespace howmany::benches {

class Bare {
 public:
  virtual ~Bare() = default;
  virtual void barrier() = 0;
  virtual void all_reduce(float* data, size_t count) = 0;                         // sum, in place
  virtual void broadcast(float* data, size_t count) = 0;                          // from rank 0
  virtual void all_gather(const float* mine, float* all, size_t count_each) = 0;  // by rank
};

#if HM_HAVE_GLOO
#define HM_BARES_GLOO(X) X(gloo)
#else
#define HM_BARES_GLOO(X)
#endif
#if HM_HAVE_MPI
#define HM_BARES_MPI(X) X(mpi)
#else
#define HM_BARES_MPI(X)
#endif
#define HM_BARES(X) HM_BARES_GLOO(X) HM_BARES_MPI(X)

// bare_gloo(comm) connects the ranks of `comm`, which must be all processes of the launch.
#define X(name) std::unique_ptr<Bare> bare_##name(Comm& comm);
HM_BARES(X)
#undef X

}  // namespace howmany::benches
