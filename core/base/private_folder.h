// SPDX-License-Identifier: Apache-2.0
// A temporary folder that only this user can access. The destructor removes it and its contents.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/temporary.h"

namespace howmany {

class PrivateFolder {
 public:
  explicit PrivateFolder(const std::filesystem::path& in = temporary_directory())
      : path_((in / "howmany-XXXXXX").string()) {
    HM_ENSURE(mkdtemp(path_.data()) != nullptr, "folder {}: {}", path_, std::strerror(errno));
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Is also removed if this process ends without running destructors (FolderGuard). Signals wait
// until it is guarded.
class GuardedFolder {
 public:
  GuardedFolder() {
    const BlockedSignals blocked;
    folder_.emplace();
    guard_.emplace(std::vector<std::string>{folder_->path()});
  }

  const std::string& path() const { return folder_->path(); }

 private:
  struct BlockedSignals {
    BlockedSignals() {
      sigset_t interrupts;
      sigemptyset(&interrupts);
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&interrupts, signal);
      pthread_sigmask(SIG_BLOCK, &interrupts, &before);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;
    sigset_t before{};
  };

  std::optional<PrivateFolder> folder_;
  std::optional<FolderGuard> guard_;  // ends first
};

}  // namespace howmany
