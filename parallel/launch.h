// Starting ranks: threads of this process, or processes. A process rank learns its place from
// torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT) or from
// HOWMANY_RENDEZVOUS=file:<path>; `howmany` alone sets them for the ranks it starts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm.h"

namespace howmany {

// Runs body on `world` threads joined by a `local` Comm; returns when all ended. The first failure
// (by time) is rethrown after its Comm was aborted, so that no peer waits for it.
void launch_threads(int world, const std::function<void(Comm&)>& body);

struct Place {
  int rank = 0, world = 1, local_rank = 0;
  std::string rendezvous;  // "file:/tmp/x" or "tcp:host:port"; empty when world is 1
  std::string launcher;    // "howmany", "torchrun", "alone"
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
  int code = 0;    // exit status, or 128 + signal
  int signal = 0;  // 0: it exited
};
struct ProcessOptions {
  std::vector<std::string> environment;  // "NAME=value" added for every rank
  std::chrono::milliseconds grace{
      5'000};  // after a first bad exit, the rest get this long before SIGTERM, then SIGKILL
  std::chrono::milliseconds time_limit{0};  // of the whole group; 0: none
};
// Starts `world` copies of argv as ranks that meet through a private rendezvous file, and waits.
// Rank 0 inherits stdout; everyone inherits stderr. Returns the first bad exit, or code 0. No child
// outlives the call, nor this process.
RankExit launch_processes(const std::vector<std::string>& argv, int world,
                          const ProcessOptions& options = {});

}  // namespace howmany
