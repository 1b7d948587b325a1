// SPDX-License-Identifier: Apache-2.0
// Manages forked loader workers from their parent: detects deaths, tracks the current sample of
// each worker and ends them. One thread of the parent makes calls. Private to core/data.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <unistd.h>

#include "core/data/batch_source.h"
#include "core/data/workers/shared_memory.h"

namespace howmany {

constexpr int kTickMs = 50;  // interval between checks of the workers
constexpr size_t kWhyBytes = 1024;

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
