// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "core/base/error.h"

namespace howmany {
namespace {

namespace fs = std::filesystem;

// Owns a descriptor. Call close() explicitly if its error matters.
class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

std::string advice(int error) {
  if (error == ENOSPC || error == EDQUOT) return "; free some space or choose another --out";
  if (error == EACCES || error == EROFS || error == EPERM) return "; choose another --out";
  return "";
}

[[noreturn]] void fail(const std::string& what, const std::string& path, int error) {
  throw InputError(
      fmt::format("cannot {} {}: {}{}", what, path, std::strerror(error), advice(error)));
}

bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Without this a power failure can undo the rename. Some filesystems cannot sync a folder, so an
// error is ignored.
void sync_folder(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const File file(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  if (file.get() >= 0) ::fsync(file.get());
}

// An unguessable name in the folder of `path`, so that rename() stays on one filesystem.
std::string temporary_beside(const std::string& path) {
  std::random_device random;
  const uint64_t number = (uint64_t{random()} << 32) | random();
  return (fs::path(path).parent_path() / fmt::format(".howmany-{:016x}", number)).string();
}

bool write_and_sync(File& file, const std::string& text) {
  return file.get() >= 0 && write_all(file.get(), text.data(), text.size()) &&
         ::fsync(file.get()) == 0 && file.close();
}

bool is_device_or_fifo(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// The file that `path` leads to through links. A link that leads nowhere is itself the file.
std::string target_of(const std::string& path) {
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  return error ? path : target.string();
}

void write_into(const std::string& path, const std::string& text) {
  File file(path, O_WRONLY | O_NOCTTY);
  if (file.get() < 0 || !write_all(file.get(), text.data(), text.size()) || !file.close())
    fail("write", path, errno);
}

}  // namespace

std::string read_text(const std::string& path, int64_t max_bytes) {
  const File file(path, O_RDONLY | O_NONBLOCK);  // O_NONBLOCK: a FIFO must not block
  struct stat status = {};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0) fail("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw InputError(fmt::format("cannot read {}: not a file", path));
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path, errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (static_cast<int64_t>(text.size()) > max_bytes) {
      throw InputError(fmt::format("cannot read {}: larger than {} bytes", path, max_bytes));
    }
  }
}

void write_text(const std::string& path, const std::string& text) {
  if (is_device_or_fifo(path)) return write_into(path, text);
  const std::string target = target_of(path), temporary = temporary_beside(target);
  File file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (!write_and_sync(file, text) || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail("write", path, error);
  }
  sync_folder(target);
}

void prepare_folder(const std::string& folder, int64_t bytes_needed) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail("make the folder", folder, error.value());
  struct statvfs space = {};
  if (::statvfs(folder.c_str(), &space) == 0) {
    const auto free = static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
    if (free < bytes_needed) {
      throw InputError(fmt::format("cannot write to {}: disk full, {} MB free and {} MB needed{}",
                                   folder, free / 1'000'000, bytes_needed / 1'000'000,
                                   advice(ENOSPC)));
    }
  }
  const std::string probe = (fs::path(folder) / ".probe").string();
  write_text(probe, std::string(4096, '\n'));
  ::unlink(probe.c_str());
}

}  // namespace howmany
