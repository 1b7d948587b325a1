// Starts ranks through Open MPI's mpirun on this host. mpirun kills all ranks as soon as one exits
// with an error, and reports little. So each rank runs under a shell script. The script writes the
// exit code to exit.<rank> in the launch folder, for the surviving ranks and the launcher. It then
// delays its own exit until the other ranks have ended or `grace` has passed.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch.h"

namespace howmany {

// `segments` holds Open MPI's shared memory; empty: its default folder. If mpirun is killed, the
// scripts of the ranks remove both.
struct LaunchFolders {
  std::string launch, segments;
};
std::vector<std::string> mpirun_command(const std::vector<std::string>& argv, int world,
                                        const LaunchFolders& folders,
                                        std::chrono::milliseconds grace);
// Returns the earliest bad exit by the exit files in the folder, or nullopt if there is none.
std::optional<RankExit> first_bad_exit(const std::string& folder, int world);
// Signals the ranks directly, because mpirun would kill them after one second.
void signal_ranks(const std::string& folder, int world, int signal);
// Returns true if the variable belongs to the MPI job or launch that this process is a rank of. The
// ranks of a nested launch must not inherit it.
bool is_of_outer_launch(const std::string& variable);

}  // namespace howmany
