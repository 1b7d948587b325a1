// SPDX-License-Identifier: Apache-2.0
// Sends tensors between processes as PyTorch does: each in a new unnamed shared memory file, whose
// descriptor is fetched over a new local connection. Private to core/data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace howmany {

inline constexpr const char* kShmFolder = "/dev/shm";

// Returns the free bytes in kShmFolder. If that folder does not exist, memory is the only limit,
// and it returns the largest int64_t.
int64_t shm_left();

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Returns new shared memory of that size. Throws Error if that fails or /dev/shm has too little
// space, because writes would end the process by SIGBUS.
Descriptor new_segment(int64_t bytes);
// Maps a segment. The descriptor stays open as long as the mapping, as in PyTorch.
std::shared_ptr<void> map_segment(Descriptor segment, int64_t bytes);

// A thread of a worker that sends a descriptor to each client that presents its ticket.
class SegmentServer {
 public:
  SegmentServer();            // throws Error
  ~SegmentServer() = delete;  // a worker ends by _exit

  const std::string& address() const { return address_; }
  uint64_t offer(Descriptor segment);  // returns the ticket
  void drop_all();

 private:
  void serve();
  void answer(int connection);

  Descriptor socket_;
  std::string address_;
  std::mutex mutex_;
  uint64_t next_ = 0;
  std::map<uint64_t, Descriptor> offered_;
  std::thread thread_;
};

// Fetches the descriptor from the server. Throws Error if the server has ended or does not know the
// ticket.
Descriptor fetch_segment(const std::string& address, uint64_t ticket);

}  // namespace howmany
