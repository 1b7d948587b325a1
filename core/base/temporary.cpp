// SPDX-License-Identifier: Apache-2.0
#include "core/base/temporary.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "core/base/environ.h"
#include "core/base/error.h"

namespace howmany {
namespace {

constexpr uint64_t kLeast = 256 << 10;  // free bytes; with fewer, the disk is full

// Children of the process may still write files for a moment, so the shell tries again.
constexpr const char* kRemove = R"sh(
for _ in 1 2 3 4 5; do
  rm -rf -- "$@" 2>/dev/null
  sleep 0.1
done
rm -rf -- "$@"
)sh";

constexpr const char* kWait = R"sh(
trap '' HUP INT TERM
read -r _
)sh";

class SpawnSettings {
 public:
  explicit SpawnSettings(int input) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_adddup2(&files_, input, STDIN_FILENO);
    // Readers of this process's output must not wait for the shell.
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      posix_spawn_file_actions_addopen(&files_, fd, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

std::filesystem::path temporary_directory() {
  const char* const set = std::getenv("TMPDIR");
  const std::filesystem::path folder = set != nullptr && *set != '\0' ? set : "/tmp";
  std::error_code ignored;
  constexpr const char* kRemedy = "set TMPDIR to a folder for temporary files";
  if (!std::filesystem::is_directory(folder, ignored))
    throw std::invalid_argument(
        fmt::format("TMPDIR: there is no folder {}: {}", folder.string(), kRemedy));
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) == 0) {
    const bool full =
        disk.f_bavail * disk.f_frsize < kLeast || (disk.f_files > 0 && disk.f_favail == 0);
    if (full)
      throw std::invalid_argument(fmt::format(
          "TMPDIR: the disk of {} is full: free some space, or {}", folder.string(), kRemedy));
  }
  return folder;
}

EndGuard::EndGuard(const std::string& commands, const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  alive_ = ends[1];
  std::vector<std::string> command = {"/bin/sh", "-c", kWait + commands, "howmany-cleanup"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  const SpawnSettings settings(ends[0]);
  if (::posix_spawn(&shell_, argv[0], settings.files(), settings.attributes(), argv.data(),
                    environ) != 0)
    shell_ = -1;
  ::close(ends[0]);
}

EndGuard::~EndGuard() {
  if (shell_ > 0) {
    if (alive_ >= 0) ::kill(shell_, SIGKILL);
    while (::waitpid(shell_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (alive_ >= 0) ::close(alive_);
}

void EndGuard::run_now() {
  if (alive_ >= 0) ::close(std::exchange(alive_, -1));
}

FolderGuard::FolderGuard(const std::vector<std::string>& folders) : EndGuard(kRemove, folders) {}

}  // namespace howmany
