// Forked loader workers as their parent sees them: which have died, where each one was, how to end
// them; and what passes between them. Private to core/data; one thread of the parent.
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

constexpr int kTickMs = 50;  // how often the living are counted
constexpr size_t kWhyBytes = 1024;

// Fresh pages shared with the processes forked later. Not a file of /dev/shm, so its size is no
// limit here.
class SharedMemory {
 public:
  // Throws Error, also when there is not so much memory left.
  explicit SharedMemory(int64_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* at(int64_t offset) const { return static_cast<std::byte*>(data_) + offset; }

 private:
  void* data_;
  size_t bytes_;
};

// Messages small enough to be written and read whole.
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
  // False when there is none.
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

  // Forks them; each runs worker_init, then body(index), and ends when that returns. Throws Error
  // when fewer could be started, after ending those.
  void start(const std::function<void(int)>& body);
  void end();

  // Of the parent.
  void check() const;  // throws the failure again
  // Throws Error, the failure, when a worker has died or `start` is longer ago than the timeout.
  void look(std::chrono::steady_clock::time_point start);

  // Of both.
  std::atomic<int64_t>& pass() { return *pass_; }  // work for another one is to be dropped
  std::atomic<int64_t>& sample(int worker) { return place(worker).sample; }
  // Of a worker.
  bool orphaned() const { return ::getppid() != parent_; }

 private:
  struct Place {
    std::atomic<int64_t> sample = -1;
    char unable[kWhyBytes] = {};  // why it could not start
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
