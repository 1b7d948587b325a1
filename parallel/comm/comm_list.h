// SPDX-License-Identifier: Apache-2.0
// The engines of this build. A new engine is its files in parallel/engines and one line here. The
// line adds it to the conformance tests, the numerical equivalence tests and the command line.
// Engines of optional libraries have lists of their own.
#pragma once

#include <howmany_parts.h>

#include "parallel/comm/engine.h"

namespace howmany::comms {

std::string gloo_unavailable(const Place& place);
std::string mpi_unavailable(const Place& place);
std::string nccl_unavailable(const Place& place);

}  // namespace howmany::comms

// One line per engine: X(name, "description", traits).
#if HM_HAVE_GLOO
#define HM_COMMS_GLOO(X)                     \
  X(gloo, "Gloo over TCP between processes", \
    CommTraits{.threads = true, .processes = true, .unavailable = comms::gloo_unavailable})
#else
#define HM_COMMS_GLOO(X)
#endif
#if HM_HAVE_MPI
#define HM_COMMS_MPI(X)                         \
  X(mpi, "MPI between the processes of mpirun", \
    CommTraits{.processes = true, .unavailable = comms::mpi_unavailable})
#else
#define HM_COMMS_MPI(X)
#endif
#if HM_HAVE_NCCL
#define HM_COMMS_NCCL(X)                   \
  X(nccl, "NCCL between GPUs, one a rank", \
    CommTraits{                            \
        .threads = true, .processes = true, .gpus = true, .unavailable = comms::nccl_unavailable})
#else
#define HM_COMMS_NCCL(X)
#endif
#define HM_COMMS(X)                                                                     \
  X(local, "shared memory between threads of one process", CommTraits{.threads = true}) \
  HM_COMMS_GLOO(X)                                                                      \
  HM_COMMS_MPI(X)                                                                       \
  HM_COMMS_NCCL(X)

namespace howmany::comms {

// Returns the engine of this rank of `place`. Collective. Throws EngineError if other ranks do not
// arrive.
#define X(name, what, ...) \
  std::unique_ptr<CommEngine> name(const Place& place, std::chrono::milliseconds timeout);
HM_COMMS(X)
#undef X

}  // namespace howmany::comms
