// SPDX-License-Identifier: Apache-2.0
#include "core/data/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace howmany {
namespace {

// O_NONBLOCK, so that open() returns for a named pipe.
Fd open_or_throw(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  HM_ENSURE(fd, "{}: {}", path, std::strerror(errno));
  return fd;
}

int64_t size_of_file(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

}  // namespace

MappedFile::MappedFile(const std::string& path)
    : path_(path), fd_(open_or_throw(path)), size_(size_of_file(fd_.get())) {
  std::string why = size_ < 0 ? "not a regular file" : size_ == 0 ? "empty file" : "";
  if (why.empty()) {
    data_ = ::mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_SHARED, fd_.get(), 0);
    if (data_ == MAP_FAILED) why = std::strerror(errno);
  }
  HM_ENSURE(why.empty(), "{}: {}", path, why);
}

MappedFile::~MappedFile() { ::munmap(data_, static_cast<size_t>(size_)); }

std::span<const std::byte> MappedFile::bytes(int64_t offset, int64_t count) const {
  HM_ENSURE(size_of_file(fd_.get()) >= offset + count, "{}: has become shorter than {} bytes",
            path_, offset + count);
  return {static_cast<const std::byte*>(data_) + offset, static_cast<size_t>(count)};
}

}  // namespace howmany
