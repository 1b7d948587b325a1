// Starting ranks: threads of this process, or processes. A process rank learns its place from
// torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), or else from
// mpirun's (OMPI_COMM_WORLD_*, PMI_*) or srun's (SLURM_*), and meets the others at
// HOWMANY_RENDEZVOUS, which `howmany` alone sets for the ranks it starts, or else at MASTER_*. With
// neither, under srun rank 0 listens on the step's first host and a port made of the job and step
// number (20000 to 29999); under mpirun on this host, or on mpirun's when there are several.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm.h"

namespace howmany {

// Runs body on `world` threads of this process, each with its Comm; returns when all ended. A rank
// that throws aborts its Comm, so that no peer waits for it; the first failure (by time) is
// rethrown. Backends other than `local` carry the bytes as they would between processes. A rank
// that has not ended hang_timeout() after a failure ends the process (hang_timeout.h).
void launch_threads(int world, const std::function<void(Comm&)>& body,
                    std::string_view backend = "local");

struct Place {
  int rank = 0, world = 1, local_rank = 0;
  // "file:<folder>" (made when missing; not used twice) or "tcp:<host>:<port>" (rank 0 listens
  // there, for anyone who can reach it); empty when world is 1, and where only mpi can find out.
  std::string rendezvous = {};
  std::string launcher = "alone";  // or "howmany", "torchrun", "mpirun", "srun"
  int local_world = 0;             // ranks on this host; 0: not known
  std::string host = {};           // named in failures when not empty
  std::string program = {};        // build and arguments: connect() refuses ranks that differ
  int gpu = -1;                    // on which nccl works; -1: that of local_rank
};
// From the environment. Throws std::invalid_argument for half a launch (RANK without WORLD_SIZE,
// rank >= world, ...) and for variables that contradict each other, as when several tasks of one
// launcher were each told to be rank 0.
Place place_from_environment();

// Joins the group; collective over all ranks of `place`. Backends between processes; "local" only
// with world 1. Throws std::invalid_argument on every rank when some are of another program.
std::unique_ptr<Comm> connect(const Place& place, std::string_view backend,
                              std::chrono::milliseconds timeout = std::chrono::seconds(30));

struct RankExit {
  int rank = 0;            // -1: mpirun itself
  int code = 0;            // exit status, or 128 + signal
  int signal = 0;          // 0: it exited
  bool timed_out = false;  // ended by the time limit
};
struct ProcessOptions {
  std::vector<std::string> environment = {};  // "NAME=value" added for every rank
  // After a first bad exit the rest get this long to fail by themselves before SIGTERM, and again
  // before SIGKILL.
  std::chrono::milliseconds grace{5'000};
  std::chrono::milliseconds time_limit{0};  // of the whole group; 0: none
  bool mpirun = false;                      // start them through mpirun, for backend "mpi"
};
// Starts `world` copies of argv as ranks that meet through a private rendezvous file, and waits.
// Rank 0 inherits stdout; everyone inherits stderr. SIGINT and SIGTERM are passed on to the ranks,
// and raised again here once all have ended. Returns the first bad exit, or code 0. No child
// outlives the call, nor the calling thread. One call at a time.
RankExit launch_processes(const std::vector<std::string>& argv, int world,
                          const ProcessOptions& options = {});

}  // namespace howmany
