// Starting ranks: threads of this process, or processes. A process rank learns its place from
// torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) or from
// HOWMANY_RENDEZVOUS, which goes before MASTER_*; `howmany` alone sets it for the ranks it starts.
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
// rethrown. Backends other than `local` carry the bytes as they would between processes.
void launch_threads(int world, const std::function<void(Comm&)>& body,
                    std::string_view backend = "local");

struct Place {
  int rank = 0, world = 1, local_rank = 0;
  // "file:<folder>" (made when missing; not used twice) or "tcp:<host>:<port>" (rank 0 listens
  // there, for anyone who can reach it); empty when world is 1.
  std::string rendezvous;
  std::string launcher = "alone";  // or "howmany", "torchrun"
};
// From the environment. Throws std::invalid_argument for half a launch (RANK without WORLD_SIZE,
// rank >= world, ...).
Place place_from_environment();

// Joins the group; collective over all ranks of `place`. Backend "gloo" here; "local" only with
// world 1.
std::unique_ptr<Comm> connect(const Place& place, std::string_view backend,
                              std::chrono::milliseconds timeout = std::chrono::seconds(30));

struct RankExit {
  int rank = 0;
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
};
// Starts `world` copies of argv as ranks that meet through a private rendezvous file, and waits.
// Rank 0 inherits stdout; everyone inherits stderr. SIGINT and SIGTERM are passed on to the ranks,
// and raised again here once all have ended. Returns the first bad exit, or code 0. No child
// outlives the call, nor the calling thread. One call at a time.
RankExit launch_processes(const std::vector<std::string>& argv, int world,
                          const ProcessOptions& options = {});

}  // namespace howmany
