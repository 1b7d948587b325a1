// SPDX-License-Identifier: Apache-2.0
// A child process of launch_processes(): a rank in a process group of its own, or mpirun in a
// session of its own, so that its children can be ended with it. The destructor kills it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/launch/launch.h"

namespace howmany {

// The standard output and error of mpirun; -1: those of this process, for a rank.
struct Streams {
  int out = -1, err = -1;
};

class RankProcess {
 public:
  // Throws Error if the program cannot be started.
  RankProcess(std::vector<std::string> argv, std::vector<std::string> environment, int rank,
              Streams streams = {});
  RankProcess(RankProcess&& other) noexcept;
  RankProcess& operator=(RankProcess&& other) noexcept;
  ~RankProcess();

  int fd() const { return fd_; }  // readable once the process has ended
  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  // Returns how the process ended, or nullopt if it still runs. Kills the rest of its process group
  // before it reaps the process, so that the group id is still its own.
  std::optional<RankExit> ended();

 private:
  void end();

  int rank_;
  bool leads_session_;
  pid_t pid_ = -1;
  int fd_ = -1;
};

// Returns this process's environment with `ours` added. Drops variables of the same names, and
// those of the launch that this process is a rank of.
std::vector<std::string> environment_with(std::vector<std::string> ours);

}  // namespace howmany
