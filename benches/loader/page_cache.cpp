// SPDX-License-Identifier: Apache-2.0
#include "benches/loader/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "core/base/fd.h"

namespace howmany::benches {
namespace {

class File {
 public:
  explicit File(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (fd_ && ::fstat(fd_.get(), &status) == 0 && S_ISREG(status.st_mode)) size_ = status.st_size;
  }

  int fd() const { return fd_.get(); }
  size_t size() const { return static_cast<size_t>(size_); }

 private:
  const Fd fd_;
  off_t size_ = 0;
};

struct Pages {
  std::atomic<size_t> resident = 0, all = 0;
  std::atomic<bool> told = true;
};

// Uses several threads, because storage may take milliseconds to open a file.
void for_each(const std::vector<std::string>& paths,
              const std::function<void(const std::string&)>& body) {
  constexpr size_t kThreads = 16, kWorthAThread = 16;
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < paths.size(); i = next++) body(paths[i]);
  };
  std::vector<std::jthread> team;
  for (size_t t = 1; t < std::min(kThreads, paths.size() / kWorthAThread); ++t)
    team.emplace_back(take);
  take();
}

void count_pages(const File& file, Pages& pages) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (file.size() == 0) return;
  void* const mapped = ::mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.fd(), 0);
  if (mapped == MAP_FAILED) {
    pages.told = false;
    return;
  }
  std::vector<unsigned char> in_memory((file.size() + page - 1) / page);
  if (::mincore(mapped, file.size(), in_memory.data()) != 0) pages.told = false;
  ::munmap(mapped, file.size());
  pages.all += in_memory.size();
  pages.resident += static_cast<size_t>(
      std::ranges::count_if(in_memory, [](unsigned char flags) { return (flags & 1) != 0; }));
}

// For other users the kernel reports every page as resident.
bool may_ask(const std::string& path) {
  struct stat status {};
  return ::access(path.c_str(), W_OK) == 0 ||
         (::stat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid());
}

}  // namespace

std::optional<double> resident_fraction(const std::vector<std::string>& paths) {
  Pages pages;
  for_each(paths, [&](const std::string& path) {
    may_ask(path) ? count_pages(File(path), pages) : pages.told.store(false);
  });
  if (!pages.told || pages.all == 0) return {};
  return static_cast<double>(pages.resident.load()) / static_cast<double>(pages.all.load());
}

void evict(const std::vector<std::string>& paths) {
  for_each(paths, [](const std::string& path) {
    const File file(path);
    if (file.fd() < 0) return;
    ::fdatasync(file.fd());
    ::posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
  });
}

void read_in(const std::vector<std::string>& paths) {
  for_each(paths, [](const std::string& path) {
    thread_local std::vector<char> buffer(1 << 20);
    const File file(path);
    while (file.fd() >= 0 && ::read(file.fd(), buffer.data(), buffer.size()) > 0) {
    }
  });
}

}  // namespace howmany::benches
