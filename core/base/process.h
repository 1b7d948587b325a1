// Child programs: started in a process group of their own, watched, never left behind. Ctrl-C,
// SIGTERM and SIGHUP to us (after catch_interrupts) end the group and come back as a result, so
// that the caller still writes its files; should we be killed outright, the kernel ends the child.
// Call from one thread, which must outlive the child. run_command waits for orphans of the child as
// well, so that getrusage counts them; the process must have no other children.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace howmany {

struct Command {
  std::vector<std::string> argv;              // argv[0] is the path
  std::vector<std::string> environment = {};  // "NAME=value" beside our own
  double timeout_seconds = 0;                 // of the whole run; 0: none
  double grace_seconds = 2;                   // between SIGTERM and SIGKILL
  std::function<void()> on_tick = {};         // about five times a second
  std::function<void(std::string_view)> on_stderr = {};
};

struct Ended {
  enum class How { kExited, kSignalled, kTimedOut, kInterrupted, kNotStarted };
  How how = How::kNotStarted;
  int code = 0;  // exit status, signal or errno
  double seconds = 0;
  std::string out, err;  // the first 16 MiB and the last 64 KiB

  bool ok() const { return how == How::kExited && code == 0; }
  // "exited with 3: [gloo] peer 1 closed", from the last line of err.
  std::string describe() const;
  // Of err, without control characters; what Google Benchmark says at its start does not count.
  std::string last_line() const;
};

// Standard input is /dev/null. Never throws for what the child does.
Ended run_command(const Command& command);

void catch_interrupts();  // a second signal ends us at once
bool interrupted();

// Becomes the program; returns only to throw InputError when that fails.
void become(const std::vector<std::string>& argv);

// The path of the program with this name in PATH, or `name` itself if it has a slash; empty if
// there is no such program.
std::string find_in_path(const std::string& name);

// The folder of the running executable.
std::string program_folder();

}  // namespace howmany
