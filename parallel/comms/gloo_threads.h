// GlooThreads: the two threads that run a group's calls, one call at a time. PyTorch's
// ProcessGroupGloo runs its calls on two threads too (torch/csrc/distributed/c10d,
// Options::threads), so the hand-over is part of what its users pay. It also matters where a rank
// has one core: Gloo's transport thread polls without blocking while a call holds a connection's
// lock, and if calls stay on one thread, most of them lose a time slice of 4 ms to it.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace howmany {

class GlooThreads {
 public:
  GlooThreads();   // the threads inherit the calling thread's cores
  ~GlooThreads();  // waits for the running call
  GlooThreads(const GlooThreads&) = delete;
  GlooThreads& operator=(const GlooThreads&) = delete;

  // Blocks until the call returns. Rethrows its exception. Thread-safe.
  template <typename Call>
  void run(const Call& call) {
    std::packaged_task<void()> task([&call] { call(); });
    std::future<void> result = task.get_future();
    enqueue(std::move(task));
    result.get();
  }

 private:
  void enqueue(std::packaged_task<void()> task);
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace howmany
