// A file seen as memory, for reading. Copying out of it notices that the file has become shorter,
// where reading the pages would end the process by SIGBUS. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace howmany {

class MappedFile {
 public:
  // Throws Error with the path: not there, not a regular file, empty.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }  // when it was opened
  // All of it, or a part. Throws Error when the file has shrunk since.
  std::span<const std::byte> bytes() const { return bytes(0, size_); }
  std::span<const std::byte> bytes(int64_t offset, int64_t count) const;

 private:
  std::string path_;
  int fd_ = -1;
  int64_t size_ = 0;
  void* data_ = nullptr;
};

}  // namespace howmany
