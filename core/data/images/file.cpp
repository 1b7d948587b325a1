// SPDX-License-Identifier: Apache-2.0
#include "core/data/images/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/fd.h"

namespace howmany::image {
namespace {

constexpr int64_t kFirstRead = 4096;  // bytes; contains most headers
constexpr int64_t kReadGrowth = 16;
constexpr int64_t kTailBytes = 64;

// No image encoding needs more than 8 bytes per pixel, so a larger file is not an image.
int64_t checked_size(int64_t bytes, int64_t max_pixels) {
  HM_ENSURE(bytes > 0, "empty file");
  HM_ENSURE(bytes / 8 <= max_pixels + kFirstRead, "{} bytes is more than {} pixels need", bytes,
            max_pixels);
  return bytes;
}

}  // namespace

class File {
 public:
  // O_NONBLOCK, so that open() returns for a named pipe.
  explicit File(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    HM_ENSURE(fd_, "{}", std::strerror(errno));
  }

  int64_t size() const {
    struct stat status {};
    HM_ENSURE(::fstat(fd_.get(), &status) == 0, "{}", std::strerror(errno));
    HM_ENSURE(!S_ISDIR(status.st_mode), "is a directory");
    HM_ENSURE(S_ISREG(status.st_mode), "not a regular file");
    return status.st_size;
  }

  void read(int64_t offset, std::span<uint8_t> out) const {
    while (!out.empty()) {
      const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), offset);
      if (n < 0 && errno == EINTR) continue;
      HM_ENSURE(n >= 0, "{}", std::strerror(errno));
      HM_ENSURE(n > 0, "shrank while being read");
      out = out.subspan(static_cast<size_t>(n));
      offset += n;
    }
  }

 private:
  const Fd fd_;
};

void read_file(const std::string& path, int64_t max_pixels, std::vector<uint8_t>& bytes) {
  const File file(path);
  fit(bytes, checked_size(file.size(), max_pixels));
  file.read(0, bytes);
}

void read_part(const std::string& path, int64_t offset, int64_t size, std::vector<uint8_t>& bytes) {
  const File file(path);
  fit(bytes, size);
  file.read(offset, bytes);
}

void FileCheck::operator()(const std::string& path) {
  const File file(path);
  check(file, 0, file.size());
}

void FileCheck::operator()(const std::string& path, int64_t offset, int64_t size) {
  check(File(path), offset, size);
}

void FileCheck::check(const File& file, int64_t offset, int64_t total) {
  checked_size(total, max_pixels_);
  Size size;
  for (int64_t n = std::min(kFirstRead, total);; n = std::min(n * kReadGrowth, total)) {
    fit(bytes_, n);
    file.read(offset, bytes_);
    try {
      size = decoder_.open(bytes_, max_pixels_);
      break;
    } catch (const Truncated&) {
      if (n == total) throw;
    }
  }
  if (const auto announced = decoder_.file_bytes()) {
    if (*announced > total) throw Truncated("truncated image");
    return;
  }
  std::array<uint8_t, kTailBytes> buffer;
  const auto tail = std::span(buffer).first(static_cast<size_t>(std::min(kTailBytes, total)));
  file.read(offset + total - static_cast<int64_t>(tail.size()), tail);
  if (ends_as_image(tail)) return;
  fit(bytes_, total);
  file.read(offset, bytes_);
  decoder_.open(bytes_, max_pixels_);
  decoder_.decode(1, {0, 0, size.width, size.height});
}

}  // namespace howmany::image
