// SPDX-License-Identifier: Apache-2.0
#include "core/data/workers/shared_memory.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>

#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "core/base/error.h"

namespace howmany {
namespace {

// Returns the available memory in bytes, or the largest int64_t if it is unknown.
int64_t memory_left() {
  std::ifstream file("/proc/meminfo");
  int64_t kilobytes = 0;
  for (std::string word; file >> word;)
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

SharedMemory::SharedMemory(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
  const int64_t left = memory_left();
  HM_ENSURE(bytes <= left,
            "[loader] {} bytes of shared memory for batches, but {} are left: fewer workers, "
            "less prefetch or smaller batches need less",
            bytes, left);
  data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  HM_ENSURE(data_ != MAP_FAILED, "[loader] no {} bytes of shared memory for batches: {}", bytes,
            std::strerror(errno));
}

SharedMemory::~SharedMemory() { ::munmap(data_, bytes_); }

Pipe::Pipe() {
  HM_ENSURE(::pipe2(ends_, O_CLOEXEC) == 0, "[loader] no pipe: {}", std::strerror(errno));
  ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
}

Pipe::~Pipe() {
  for (const int end : ends_) ::close(end);
}

bool Pipe::waits(int milliseconds) const {
  pollfd end{ends_[0], POLLIN, 0};
  return ::poll(&end, 1, milliseconds) == 1;
}

}  // namespace howmany
