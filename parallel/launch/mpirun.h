// SPDX-License-Identifier: Apache-2.0
// Starts ranks through Open MPI's mpirun on this host. Each rank runs under a supervisor
// (rank_supervisor.h). Its files in the launch folder report the pid and the exit code of the rank.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/launch.h"

namespace howmany {

// A variable with "<pid of the launcher> <grace in ms>", which requests supervise_rank().
constexpr const char* kSupervise = "HOWMANY_SUPERVISE";

// `segments` holds Open MPI's shared memory; empty: its default folder.
struct LaunchFolders {
  std::string launch, segments;
};
std::vector<std::string> mpirun_command(const std::vector<std::string>& argv, int world,
                                        const LaunchFolders& folders);
// Returns the environment entry that keeps the sockets of a launcher on the loopback interface
// (loopback_bind.cpp), or "" if this installation has no such library.
std::string loopback_preload();
// Returns the earliest bad exit by the exit files in the folder, or nullopt if there is none.
std::optional<RankExit> first_bad_exit(const std::string& folder, int world);
// Returns the pid of a rank that mpirun started, or 0 if it does not run.
pid_t pid_of_rank(const std::string& folder, int rank);
// The FIFO in the launch folder through which ranks and supervisors wake the launcher.
std::string events_file(const std::string& folder);
void report_event(const std::string& folder);
// Returns true if the variable belongs to the MPI job or launch that this process is a rank of. The
// ranks of a nested launch must not inherit it.
bool is_of_outer_launch(const std::string& variable);

}  // namespace howmany
