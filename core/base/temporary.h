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

// Removes folders if this process ends without running destructors, for instance by SIGKILL. A
// shell in a session of its own waits for the end of this process, and has no other effect. The
// owner removes the folders if the process ends normally. If the shell cannot be started, the
// folders stay after such an end.
class FolderGuard {
 public:
  explicit FolderGuard(const std::vector<std::string>& folders);
  ~FolderGuard();  // ends the shell
  FolderGuard(const FolderGuard&) = delete;
  FolderGuard& operator=(const FolderGuard&) = delete;

 private:
  pid_t shell_ = -1;
  int alive_ = -1;  // the shell reads end-of-file here once this process has ended
};

}  // namespace howmany
