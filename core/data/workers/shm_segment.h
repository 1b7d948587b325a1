// Tensors that travel between processes as PyTorch sends them: each in a new file of shared memory
// that has no name, its descriptor fetched over a new local connection. Private to core/data.
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

// Bytes that files there may still take; the largest number when there is no such folder, since
// memory is then the only limit.
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

// Fresh memory of that size. Throws Error, also when /dev/shm has too little left: writing would
// end the process by SIGBUS.
Descriptor new_segment(int64_t bytes);
// Sees a segment as memory. The descriptor stays open as long, as PyTorch's does.
std::shared_ptr<void> map_segment(Descriptor segment, int64_t bytes);

// Hands out descriptors to whoever asks with the ticket: a thread that listens. Made by a worker.
class SegmentServer {
 public:
  SegmentServer();            // throws Error
  ~SegmentServer() = delete;  // a worker ends by _exit

  const std::string& address() const { return address_; }
  uint64_t offer(Descriptor segment);  // a ticket
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

// Asks the server at that address. Throws Error when it is gone or does not know the ticket.
Descriptor fetch_segment(const std::string& address, uint64_t ticket);

}  // namespace howmany
