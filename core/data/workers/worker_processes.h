// Manages forked loader workers from their parent: detects deaths, tracks the current sample of
// each worker, ends them, and provides shared memory and pipes. One thread of the parent makes
// calls. Private to core/data.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <unistd.h>

#include "core/data/batch_source.h"

namespace howmany {

constexpr int kTickMs = 50;  // interval between checks of the workers
constexpr size_t kWhyBytes = 1024;

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

class WorkerProcesses {
 public:
  explicit WorkerProcesses(const BatchMaker& maker);
  ~WorkerProcesses() { end(); }
  WorkerProcesses(const WorkerProcesses&) = delete;
  WorkerProcesses& operator=(const WorkerProcesses&) = delete;

  // Forks the workers. Each runs worker_init, then body(index), and exits. If not all can be
  // started, ends those that were and throws Error.
  void start(const std::function<void(int)>& body);
  void end();

  // For the parent.
  void check() const;  // rethrows an earlier failure
  // Throws Error if a worker has died or the timeout has passed since `start`.
  void look(std::chrono::steady_clock::time_point start);

  // For both.
  std::atomic<int64_t>& pass() { return *pass_; }  // workers drop the tasks of other passes
  std::atomic<int64_t>& sample(int worker) { return place(worker).sample; }
  // For a worker.
  bool orphaned() const { return ::getppid() != parent_; }

 private:
  struct Place {
    std::atomic<int64_t> sample = -1;
    char unable[kWhyBytes] = {};  // the reason if it could not start
  };

  Place& place(int worker);
  [[noreturn]] void work(int worker, const std::function<void(int)>& body);
  void look_for_the_dead();
  void look_at_the_clock(std::chrono::steady_clock::time_point start);
  [[noreturn]] void give_up(const std::string& why);

  const BatchMaker& maker_;
  SharedMemory memory_;
  std::atomic<int64_t>* pass_;
  pid_t parent_;
  std::map<pid_t, int> workers_;
  std::string failure_;
};

// Copies a reason into a buffer of kWhyBytes.
void write_why(char* to, const std::string& why);

}  // namespace howmany
