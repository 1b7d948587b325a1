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

// A part of a file, widened to whole pages.
class Part {
 public:
  explicit Part(const FilePart& part)
      : fd_(::open(part.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    static const int64_t page = ::sysconf(_SC_PAGESIZE);
    struct stat status {};
    if (!fd_ || ::fstat(fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    begin_ = part.offset / page * page;
    const int64_t end = std::min(part.offset + part.size, status.st_size);
    pages_ = end > begin_ ? static_cast<size_t>((end - begin_ + page - 1) / page) : 0;
    size_ = pages_ * static_cast<size_t>(page);
  }

  int fd() const { return fd_.get(); }
  off_t begin() const { return begin_; }
  size_t size() const { return size_; }
  size_t pages() const { return pages_; }

 private:
  const Fd fd_;
  off_t begin_ = 0;
  size_t size_ = 0, pages_ = 0;
};

struct Pages {
  std::atomic<size_t> resident = 0, all = 0;
  std::atomic<bool> told = true;
};

// Uses several threads, because storage may take milliseconds to open a file.
void for_each(const std::vector<FilePart>& parts,
              const std::function<void(const FilePart&)>& body) {
  constexpr size_t kThreads = 16, kWorthAThread = 16;
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < parts.size(); i = next++) body(parts[i]);
  };
  std::vector<std::jthread> team;
  for (size_t t = 1; t < std::min(kThreads, parts.size() / kWorthAThread); ++t)
    team.emplace_back(take);
  take();
}

void count_pages(const Part& part, Pages& pages) {
  if (part.size() == 0) return;
  void* const mapped = ::mmap(nullptr, part.size(), PROT_READ, MAP_SHARED, part.fd(), part.begin());
  if (mapped == MAP_FAILED) {
    pages.told = false;
    return;
  }
  std::vector<unsigned char> in_memory(part.pages());
  if (::mincore(mapped, part.size(), in_memory.data()) != 0) pages.told = false;
  ::munmap(mapped, part.size());
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

std::optional<double> resident_fraction(const std::vector<FilePart>& parts) {
  Pages pages;
  for_each(parts, [&](const FilePart& part) {
    may_ask(part.path) ? count_pages(Part(part), pages) : pages.told.store(false);
  });
  if (!pages.told || pages.all == 0) return {};
  return static_cast<double>(pages.resident.load()) / static_cast<double>(pages.all.load());
}

void evict(const std::vector<FilePart>& parts) {
  for_each(parts, [](const FilePart& file_part) {
    const Part part(file_part);
    if (part.size() == 0) return;
    ::fdatasync(part.fd());
    ::posix_fadvise(part.fd(), part.begin(), static_cast<off_t>(part.size()), POSIX_FADV_DONTNEED);
  });
}

void read_in(const std::vector<FilePart>& parts) {
  for_each(parts, [](const FilePart& file_part) {
    thread_local std::vector<char> buffer(1 << 20);
    const Part part(file_part);
    for (size_t done = 0; done < part.size();) {
      const ssize_t n =
          ::pread(part.fd(), buffer.data(), std::min(buffer.size(), part.size() - done),
                  part.begin() + static_cast<off_t>(done));
      if (n <= 0) return;
      done += static_cast<size_t>(n);
    }
  });
}

}  // namespace howmany::benches
