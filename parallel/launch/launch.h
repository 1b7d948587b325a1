// SPDX-License-Identifier: Apache-2.0
// Starts ranks as threads of this process or as processes.
//
// Place. A process reads its rank from the variables of torchrun (RANK, WORLD_SIZE, LOCAL_RANK),
//   else of mpirun (OMPI_COMM_WORLD_*, PMI_*), else of srun (SLURM_*).
// Rendezvous. Ranks connect at HOWMANY_RENDEZVOUS, which `howmany` sets for the ranks it starts,
//   else at MASTER_ADDR and MASTER_PORT. If neither is set, rank 0 listens on a port from 20000 to
//   29999 that is derived from the job. Its host is the step's first host (srun), or mpirun's host
//   if there are several hosts, else this host (mpirun).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/comm.h"
#include "parallel/comm/place.h"

namespace howmany {

// Runs body on `world` threads of this process, each with its Comm, and returns when all have
// ended. A rank that throws aborts its Comm. Rethrows the first failure by time. Backends other
// than `local` communicate as they do between processes. If a rank still runs hang_timeout() after
// a failure, the process ends (hang_timeout.h).
void launch_threads(int world, const std::function<void(Comm&)>& body,
                    std::string_view backend = "local");

// Reads the environment. Throws std::invalid_argument if the variables are incomplete (RANK without
// WORLD_SIZE, rank >= world, ...) or contradict each other (several tasks of a launcher are rank
// 0).
Place place_from_environment();

// Connects the ranks of `place`. Collective. "local" requires world 1. Throws CommError if ranks
// cannot connect, std::invalid_argument on every rank if their programs differ.
std::unique_ptr<Comm> connect(const Place& place, std::string_view backend,
                              std::chrono::milliseconds timeout = std::chrono::seconds(30));

struct RankExit {
  int rank = 0;                // -1: mpirun
  int code = 0;                // exit status, or 128 + signal
  int signal = 0;              // 0: exited
  bool timed_out = false;      // exceeded the time limit
  int forwarded = 0;           // SIGINT, SIGTERM or SIGHUP that this process got; 0: none
  std::string why = {};        // set if a rank or mpirun was late: "did not connect ..."
  std::string last_line = {};  // of mpirun, if mpirun failed and no rank
};
struct ProcessOptions {
  std::vector<std::string> environment = {};  // "NAME=value" added for every rank
  // After the first bad exit: the delay before the other ranks get SIGTERM, and then, but after at
  // most 1 s, SIGKILL.
  std::chrono::milliseconds grace{5'000};
  // Until every rank has called report_started(); 0: none. Then the result names the late rank.
  std::chrono::milliseconds start_limit{0};
  std::chrono::milliseconds time_limit{0};  // of the whole group; 0: none
  bool mpirun = false;                      // starts the ranks through mpirun (backend "mpi")
};
// Starts `world` copies of argv as ranks that connect through a private folder, and waits for them.
// Returns the first bad exit, or code 0.
// Output. Rank 0 inherits stdout; all ranks inherit stderr. Throws Error if the output of mpirun
//   cannot be written.
// Signals. SIGINT, SIGTERM and SIGHUP are forwarded to the ranks and raised again once all have
//   ended. A caller with handlers of its own blocks them first, so that none is lost; the call
//   unblocks them. Ranks that have not ended 3 s later are killed; so are, at once, ranks that have
//   not started.
// Files. The temporary folders are removed even if this process is killed.
// Lifetime. No child outlives the call or the calling thread.
// Thread safety. One call at a time.
RankExit launch_processes(const std::vector<std::string>& argv, int world,
                          const ProcessOptions& options = {});

// Tells the launch_processes() that started this rank that it has connected and handles signals.
void report_started(const Place& place);

}  // namespace howmany
