// SPDX-License-Identifier: Apache-2.0
// Memory and pipes that a parent and its forked loader workers share. Private to core/data.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace howmany {

// New memory that is shared with processes forked later. It is not a file in /dev/shm, so the size
// of /dev/shm does not limit it.
class SharedMemory {
 public:
  // Throws Error if the mapping fails or memory is too small.
  explicit SharedMemory(int64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* at(int64_t offset) const { return static_cast<std::byte*>(data_) + offset; }

 private:
  void* data_;
  size_t bytes_;
};

// A pipe for messages that are small enough to be written and read atomically.
class Pipe {
 public:
  Pipe();
  ~Pipe();
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  template <class Message>
  void write(const Message& message) const {
    static_assert(sizeof message <= 4096);  // PIPE_BUF
    while (::write(ends_[1], &message, sizeof message) < 0 && errno == EINTR) {
    }
  }
  // Returns false if there is no message.
  template <class Message>
  bool read(Message& message) const {
    ssize_t n = 0;
    while ((n = ::read(ends_[0], &message, sizeof message)) < 0 && errno == EINTR) {
    }
    return n == static_cast<ssize_t>(sizeof message);
  }
  bool waits(int milliseconds) const;

 private:
  int ends_[2];
};

}  // namespace howmany
