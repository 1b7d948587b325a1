// SPDX-License-Identifier: Apache-2.0
// GlooThreads: the two threads that run a group's calls, one call at a time. PyTorch's
// ProcessGroupGloo runs its calls on two threads too (torch/csrc/distributed/c10d,
// Options::threads), so the hand-over is part of what its users pay. It also matters where a rank
// has one core: Gloo's transport thread polls without blocking while a call holds a connection's
// lock, and if calls stay on one thread, most of them lose a time slice of 4 ms to it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "parallel/engines/awake_time.h"

namespace howmany {

class GlooThreads {
 public:
  GlooThreads();   // the threads inherit the calling thread's cores
  ~GlooThreads();  // waits for the running call
  GlooThreads(const GlooThreads&) = delete;
  GlooThreads& operator=(const GlooThreads&) = delete;

  // Blocks until the call returns. Rethrows its exception. If the call is slower than the timeout,
  // calls on_timeout() once, which must end it. Thread-safe.
  template <typename Call, typename OnTimeout>
  void run(const Call& call, std::chrono::milliseconds timeout, const OnTimeout& on_timeout) {
    std::packaged_task<void()> task([&call] { call(); });
    std::future<void> result = task.get_future();
    enqueue(std::move(task));
    AwakeTime time;
    const auto slice = AwakeTime::slice_of(timeout);
    while (result.wait_for(slice) == std::future_status::timeout)
      if (time.so_far() > timeout) {
        on_timeout();
        break;
      }
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
