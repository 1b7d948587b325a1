// Ranks that mpirun starts for howmany, on this host. mpirun would kill every rank as soon as one
// ends badly and tell little of it, so each rank runs under a line of shell that writes down how it
// ended (exit.<rank> in the folder of the launch, for the survivors and for the launcher) and holds
// mpirun off until the others ended too, or `grace` has passed. Open MPI's flags.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch.h"

namespace howmany {

// `segments` is for Open MPI's shared memory; empty: where it likes. Should mpirun be killed, both
// go with the ranks.
struct LaunchFolders {
  std::string launch, segments;
};
std::vector<std::string> mpirun_command(const std::vector<std::string>& argv, int world,
                                        const LaunchFolders& folders,
                                        std::chrono::milliseconds grace);
// The earliest, by the files in the folder.
std::optional<RankExit> first_bad_exit(const std::string& folder, int world);
// To the ranks themselves: mpirun would give them a second, then kill them.
void signal_ranks(const std::string& folder, int world, int signal);
// Whether a variable belongs to the MPI job or the launch that this process is itself a rank of,
// and must not reach the ranks of another one.
bool is_of_outer_launch(const std::string& variable);

}  // namespace howmany
