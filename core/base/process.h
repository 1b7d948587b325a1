// SPDX-License-Identifier: Apache-2.0
// Runs child programs. Each child has its own process group and never outlives run_command().
//
// Signals. After catch_interrupts(), SIGINT (Ctrl-C), SIGTERM and SIGHUP end the group and are
//   reported in the result, so that the caller can still write its files. If this process is
//   killed, the kernel ends the child.
// Thread safety. One thread makes all calls, and it must outlive the child.
// Orphans. run_command() also waits for orphaned descendants of the child, so that getrusage()
//   counts them. The process must have no other children.
#pragma once

#include <functional>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace howmany {

struct Command {
  std::vector<std::string> argv;              // argv[0] is the path
  std::vector<std::string> environment = {};  // "NAME=value", added to this process's environment
  std::string input = {};                     // standard input
  std::string folder = {};                    // working directory; empty: this process's
  double timeout_seconds = 0;                 // limit of the whole run; 0: none
  double stopped_seconds = 30;                // limit if the child is stopped, as by SIGSTOP
  double grace_seconds = 2;                   // between SIGTERM and SIGKILL
  bool end_descendants = false;               // kill descendants that left the child's group
  std::function<void()> on_tick = {};         // called about five times a second
  std::function<void(std::string_view)> on_stdout = {}, on_stderr = {};
  std::function<void()> ask_to_end = {};  // instead of SIGTERM to the child's group
  std::function<bool()> is_done = {};     // asked with each tick; if true, the group is ended
};

struct ProcessResult {
  enum class How { kExited, kSignalled, kTimedOut, kInterrupted, kDone, kNotStarted };
  How how = How::kNotStarted;
  int code = 0;  // exit status, signal or errno
  double seconds = 0;
  std::string out, err;  // the first 16 MiB and the last 64 KiB

  bool ok() const { return how == How::kDone || (how == How::kExited && code == 0); }
  // Returns for instance "exited with 3: [gloo] peer 1 closed", with the last line of err.
  std::string describe() const;
  // Returns the last line of err without control characters. Skips the banner of Google Benchmark.
  std::string last_line() const;
};

// Does not throw if the child fails: the result has the reason.
ProcessResult run_command(const Command& command);

void catch_interrupts();  // a second signal ends this process at once
bool interrupted();

// Replaces this process with the program (exec). Does not return. Throws InputError if that fails.
void exec_program(const std::vector<std::string>& argv);

// Returns the path of the program in PATH, or `name` itself if it contains a slash. Returns "" if
// there is no such program.
std::string find_in_path(const std::string& name);

// The folder of the running executable.
std::string program_folder();

// Splits the content of /proc/<pid>/cmdline: words that end in NUL. The last NUL may be missing, as
// after setproctitle().
std::vector<std::string> arguments_in(std::istream& cmdline);
std::vector<std::string> arguments_of_this_process();

// Path that starts this program again. A bundle has many in one executable: see cmake/bundle.cmake.
// Throws std::filesystem::filesystem_error if /proc is unreadable.
std::string program_path();

}  // namespace howmany
