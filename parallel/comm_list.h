// The engines of this build: a new one is its files in parallel/comms and its line here, which
// enrols it in the conformance tests, the law and the command line. Those of libraries that may be
// missing have lists of their own.
#pragma once

#include <howmany_parts.h>

#include "parallel/engine.h"

namespace howmany::comms {

std::string gloo_unavailable(const Place& place);
std::string mpi_unavailable(const Place& place);
std::string nccl_unavailable(const Place& place);

}  // namespace howmany::comms

// One line per engine: X(name, "what carries the bytes", traits).
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

// The engine of one rank of `place`; collective. Throws EngineError when the others do not come.
#define X(name, what, ...) \
  std::unique_ptr<CommEngine> name(const Place& place, std::chrono::milliseconds timeout);
HM_COMMS(X)
#undef X

}  // namespace howmany::comms
