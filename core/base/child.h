// SPDX-License-Identifier: Apache-2.0
// A child process in a group or session of its own. The destructor kills that group and waits for
// the child. run_command() (process.h) and launch_processes() (parallel/launch) are built on it.
//
// Lifetime. The kernel ends the child if the thread that started it ends.
// Input. Standard input is /dev/null unless a descriptor is given.
// Thread safety. One thread makes all calls.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "core/base/fd.h"

namespace howmany {

struct ChildOptions {
  std::vector<std::string> argv;         // argv[0] is a path or a name in PATH
  std::vector<std::string> environment;  // all of it, as "NAME=value"
  std::string program = {};              // path to execute; empty: argv[0]
  std::string folder = {};               // working directory; empty: this process's
  int in = -1;                           // standard input; -1: /dev/null
  int out = -1, err = -1;                // standard output and error; -1: those of this process
  bool leads_session = false;            // a new session; its processes end with the child
  bool resets_signals = false;           // default handlers and an empty mask
  int death_signal = SIGKILL;            // when the starting thread ends
};

class Child {
 public:
  // Starts the program. Does not throw if that fails: then error() is not 0.
  explicit Child(const ChildOptions& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;
  ~Child() { end(); }

  int error() const { return error_; }  // errno if the program was not started, else 0
  pid_t pid() const { return pid_; }    // -1 once end() was called
  // Readable once the child has ended. -1 if the kernel has none (before 5.3): then poll
  // has_ended().
  int fd() const { return fd_.get(); }
  void signal(int number) const;  // to the group of the child
  bool has_ended() const;
  // Kills the rest of the group (or session), waits for the child, and returns its wait status.
  // The group is killed first, while its id cannot be reused. Later calls return 0.
  int end();

 private:
  void kill_session() const;

  pid_t pid_ = -1;
  Fd fd_;
  bool leads_session_ = false;
  int error_ = 0;
};

// Returns `first`, and this process's environment without the names in it: a shell takes the last
// entry of a name, getenv() the first.
std::vector<std::string> environment_behind(std::vector<std::string> first);

// Returns the exit status, or 128 + signal.
int exit_code_of(int wait_status);

}  // namespace howmany
