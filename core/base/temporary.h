// SPDX-License-Identifier: Apache-2.0
// Temporary folders.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace howmany {

// Returns TMPDIR, or /tmp if it is not set. Throws std::invalid_argument that names TMPDIR if there
// is no such folder, or its disk is full.
std::filesystem::path temporary_directory();

// Runs the commands of a shell if this process ends without running destructors, for instance by
// SIGKILL. The shell, in a session of its own, waits for the end of this process, and has no other
// effect. If it cannot be started, nothing runs after such an end.
class EndGuard {
 public:
  // `arguments` are "$@" of the commands.
  EndGuard(const std::string& commands, const std::vector<std::string>& arguments);
  ~EndGuard();  // ends the shell, or waits for it after run_now()
  EndGuard(const EndGuard&) = delete;
  EndGuard& operator=(const EndGuard&) = delete;
  void run_now();  // starts the commands, once

 private:
  pid_t shell_ = -1;
  int alive_ = -1;  // the shell reads end-of-file here once this process has ended
};

// Removes folders after such an end. The owner removes them if the process ends normally.
class FolderGuard : public EndGuard {
 public:
  explicit FolderGuard(const std::vector<std::string>& folders);
};

}  // namespace howmany
