// SPDX-License-Identifier: Apache-2.0
#include "reports/results/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/process.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/shell.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".lock";
constexpr const char* kFilesOfARun[] = {"plan.json", "summary.json", "base.json", "study.json"};
constexpr int kMaxSuffix = 10'000;

std::string lock_path(const std::string& folder) { return folder + "/" + kLock; }

bool holds_anything(const std::string& folder) {
  std::error_code error;
  const auto is_other = [](const fs::directory_entry& entry) {
    return entry.path().filename() != kLock;
  };
  return std::any_of(fs::directory_iterator(folder, error), fs::directory_iterator(), is_other);
}

[[noreturn]] void refuse_in_use(const std::string& folder) {
  std::string holder = read_text(lock_path(folder));
  std::erase(holder, '\n');
  throw InputError(fmt::format("{} is in use by process {}; choose another --out", folder, holder));
}

int open_lock(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) throw InputError(fmt::format("cannot write to {}: {}", path, std::strerror(errno)));
  return file;
}

// True if `path` still is this file. Its last holder removes it.
bool is_still_at(const std::string& path, int file) {
  struct stat here {
  }, there{};
  return ::fstat(file, &here) == 0 && ::stat(path.c_str(), &there) == 0 &&
         here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

// Returns the descriptor of the lock file, which holds the process id for messages.
int locked(const std::string& folder) {
  const std::string path = lock_path(folder);
  for (;;) {
    const int file = open_lock(path);
    const bool held = ::flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!held && is_still_at(path, file)) {
      const std::string id = fmt::format("{}\n", ::getpid());
      (void)!(::ftruncate(file, 0) != 0 || ::pwrite(file, id.data(), id.size(), 0) < 0);
      return file;
    }
    ::close(file);
    if (held) refuse_in_use(folder);
  }
}

void refuse_others(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return;
  const char* const remedy = "--resume runs the command in it; start afresh";
  if (found.st_uid != ::geteuid())
    throw InputError(fmt::format("{} belongs to another user, and {}", path, remedy));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw InputError(fmt::format("other users can write to {}, and {}", path, remedy));
}

// Makes howmany-out/<UTC time><label>, or that with a suffix. Two processes never get the same.
std::string make_default_folder(const std::string& label) {
  const std::string name = "howmany-out/" + utc_now("%Y%m%dT%H%M%SZ") + label;
  std::error_code error;
  fs::create_directories("howmany-out", error);
  std::string folder = name;
  for (int i = 2; i < kMaxSuffix && !fs::create_directory(folder, error) && !error; ++i)
    folder = fmt::format("{}-{}", name, i);
  return folder;
}

}  // namespace

RunFolder::RunFolder(std::string path) : path_(std::move(path)), lock_(-1) {
  prepare_folder(path_);
  lock_ = locked(path_);
}

RunFolder RunFolder::create(const std::string& out, const std::string& label) {
  catch_interrupts();
  check(out);
  const bool is_new = !fs::exists(out);
  RunFolder folder(out.empty() ? make_default_folder(label) : out);
  check(folder.path_);  // another process may have written to it before the lock
  folder.is_new_ = is_new;
  if (is_new) keep_others_out(folder.path_);
  return folder;
}

RunFolder RunFolder::reopen(const std::string& path) {
  catch_interrupts();
  refuse_others(path);
  for (const char* const name : kFilesOfARun) refuse_others(path + "/" + name);
  return RunFolder(path);
}

void RunFolder::keep_others_out(const std::string& path) {
  constexpr auto kOthers = fs::perms::group_write | fs::perms::others_write;
  fs::permissions(path, kOthers, fs::perm_options::remove);
}

void RunFolder::check(const std::string& out) {
  if (out.empty() || !holds_anything(out)) return;
  const auto exists = [&](const char* name) { return fs::exists(out + "/" + name); };
  if (std::ranges::any_of(kFilesOfARun, exists))
    throw InputError(fmt::format("{} holds a run already; choose another --out", out));
  throw InputError(fmt::format("{} is not empty; --out needs a new or an empty folder", out));
}

RunFolder::~RunFolder() {
  if (lock_ < 0) return;
  ::unlink(lock_path(path_).c_str());
  ::close(lock_);
  std::error_code not_empty;
  if (is_new_) fs::remove(path_, not_empty);
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      is_new_(other.is_new_) {}

std::string summary_path(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  if (fs::exists(path + "/base.json"))
    throw InputError(
        fmt::format("{0} is of howmany gate; give howmany compare {0}/base.json {0}/candidate.json",
                    shell_quoted(path)));
  if (!fs::exists(path + "/summary.json") && fs::exists(path + "/plan.json"))
    throw InputError(fmt::format(
        "{} holds no result, as the run ended before its first one; continue with howmany gpus "
        "--resume {}",
        path, shell_quoted(path)));
  return path + "/summary.json";
}

}  // namespace howmany::reports
