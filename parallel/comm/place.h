// SPDX-License-Identifier: Apache-2.0
// The place of a process among the ranks, and where they connect.
#pragma once

#include <string>

namespace howmany {

struct Place {
  int rank = 0, world = 1, local_rank = 0;
  // "file:<folder>" (created if missing; must not be reused) or "tcp:<host>:<port>" (rank 0 listens
  // there, without authentication). Empty if world is 1 or only mpi can connect the ranks.
  std::string rendezvous = {};
  std::string launcher = "alone";  // or "howmany", "torchrun", "mpirun", "srun"
  int local_world = 0;             // ranks on this host; 0: unknown
  std::string host = {};           // for error messages; may be empty
  std::string program = {};        // build and arguments; connect() rejects ranks that differ
  int gpu = -1;                    // the GPU of nccl; -1: local_rank, or none if world is 1
};

}  // namespace howmany
