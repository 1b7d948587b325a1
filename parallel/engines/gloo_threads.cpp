// SPDX-License-Identifier: Apache-2.0
#include "parallel/engines/gloo_threads.h"

#include <utility>

namespace howmany {
namespace {

constexpr int kThreads = 2;

}  // namespace

GlooThreads::GlooThreads() {
  for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
}

GlooThreads::~GlooThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void GlooThreads::enqueue(std::packaged_task<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void GlooThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::packaged_task<void()> task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace howmany
