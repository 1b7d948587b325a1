// SPDX-License-Identifier: Apache-2.0
// A read-only memory-mapped file. bytes() checks that the file has not shrunk, because access to
// missing pages would end the process by SIGBUS. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/base/fd.h"

namespace howmany {

class MappedFile {
 public:
  // Throws Error with the path if the file is missing, empty or not a regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // at the time of opening
  // Return the whole file, or a part. Throw Error if the file has shrunk since it was opened.
  std::span<const std::byte> bytes() const { return bytes(0, size_); }
  std::span<const std::byte> bytes(int64_t offset, int64_t count) const;

 private:
  std::string path_;
  Fd fd_;
  int64_t size_ = 0;
  void* data_ = nullptr;
};

}  // namespace howmany
