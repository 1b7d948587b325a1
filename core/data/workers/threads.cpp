// SPDX-License-Identifier: Apache-2.0
// Threads make batches and pass them to the consumer without a copy.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/data/batch_source.h"

namespace howmany {
namespace {

// A pass over the data. A worker that is still on an abandoned pass keeps it alive.
struct Pass {
  Epoch epoch;
  std::atomic<bool> abandoned = false;
};

// A finished batch or its failure.
struct Slot {
  std::optional<Batch> batch;
  std::exception_ptr error;
  bool filled() const { return batch.has_value() || error; }
};

// The state that workers share. A hanging worker that is detached keeps it alive.
struct Shared {
  explicit Shared(const BatchMaker& m)
      : maker(m),
        slots(static_cast<size_t>(m.options().workers) * static_cast<size_t>(m.options().prefetch)),
        at(static_cast<size_t>(m.options().workers)) {
    for (auto& sample : at) sample = -1;
  }

  void replace(std::shared_ptr<Pass> next);
  void work(size_t worker);
  void init(size_t worker);
  void keep(int64_t batch, Slot filled);
  bool has(int64_t batch) { return options().in_order ? slot(batch).filled() : !finished.empty(); }
  Slot& next(int64_t batch) { return options().in_order ? slot(batch) : finished.front(); }
  const LoaderOptions& options() const { return maker.options(); }
  Batch make(const Pass& from, int64_t batch, size_t worker);
  Slot& slot(int64_t batch) { return slots[static_cast<size_t>(batch) % slots.size()]; }

  const BatchMaker maker;  // a copy, for detached workers
  std::mutex mutex;
  std::condition_variable issue, ready;
  std::shared_ptr<Pass> pass;
  bool stop = false;
  int64_t issued = 0, delivered = 0;     // batches of this pass
  std::vector<Slot> slots;               // batch b in slot b % window
  std::deque<Slot> finished;             // used instead of slots if order does not matter
  std::exception_ptr unable;             // the reason if a worker could not start
  std::vector<std::atomic<int64_t>> at;  // current sample per worker
};

void Shared::replace(std::shared_ptr<Pass> next) {
  {
    std::lock_guard lock(mutex);
    if (pass) pass->abandoned = true;
    pass = std::move(next);
    issued = delivered = 0;
    for (Slot& s : slots) s = {};
    finished.clear();
  }
  issue.notify_all();
}

// If the pass is abandoned, returns early with an incomplete batch.
Batch Shared::make(const Pass& from, int64_t batch, size_t worker) {
  return maker.make(from.epoch, batch, at[worker],
                    [&] { return from.abandoned.load(std::memory_order_relaxed); });
}

void Shared::init(size_t worker) {
  try {
    maker.init_worker(static_cast<int>(worker));
  } catch (...) {
    std::lock_guard lock(mutex);
    if (!unable) unable = std::current_exception();
    stop = true;
  }
  ready.notify_one();
}

void Shared::keep(int64_t batch, Slot filled) {
  if (options().in_order)
    slot(batch) = std::move(filled);
  else
    finished.push_back(std::move(filled));
}

void Shared::work(size_t worker) {
  init(worker);
  const auto window = static_cast<int64_t>(slots.size());
  const auto wanted = [&] {
    return stop || (pass && issued < std::min(maker.batches(), delivered + window));
  };
  std::unique_lock lock(mutex);
  for (;;) {
    issue.wait(lock, wanted);
    if (stop) return;
    const auto my_pass = pass;
    const int64_t batch = issued++;
    lock.unlock();
    Slot filled;
    try {
      filled.batch = make(*my_pass, batch, worker);
    } catch (...) {
      filled.error = std::current_exception();
    }
    lock.lock();
    if (my_pass->abandoned) continue;
    keep(batch, std::move(filled));
    ready.notify_one();
  }
}

class ThreadWorkers final : public BatchSource {
 public:
  explicit ThreadWorkers(const BatchMaker& maker) : shared_(std::make_shared<Shared>(maker)) {
    try {
      for (int i = 0; i < maker.options().workers; ++i)
        threads_.emplace_back([shared = shared_, i] { shared->work(static_cast<size_t>(i)); });
    } catch (const std::system_error& error) {
      end();
      throw Error(fmt::format("[loader] only {} of {} worker threads could be started: {}",
                              threads_.size(), maker.options().workers, error.what()));
    }
  }
  ~ThreadWorkers() override { end(); }

  void start(int64_t epoch) override {
    HM_ENSURE(failure_.empty(), "{}", failure_);
    auto pass = std::make_shared<Pass>();
    pass->epoch = shared_->maker.epoch(epoch);
    shared_->replace(std::move(pass));
  }

  Batch take(int64_t batch) override {
    HM_ENSURE(failure_.empty(), "{}", failure_);
    Slot taken;
    {
      std::unique_lock lock(shared_->mutex);
      if (!wait(lock, batch)) throw Error(failure_);
      if (shared_->unable) std::rethrow_exception(shared_->unable);
      taken = std::exchange(shared_->next(batch), {});
      if (!shared_->options().in_order) shared_->finished.pop_front();
      ++shared_->delivered;
    }
    shared_->issue.notify_one();
    if (taken.error) std::rethrow_exception(taken.error);
    return std::move(*taken.batch);
  }

 private:
  // Returns false if the timeout expired; then the source is finished.
  bool wait(std::unique_lock<std::mutex>& lock, int64_t batch) {
    const double limit = shared_->maker.options().timeout_seconds;
    const auto filled = [&] { return shared_->unable || shared_->has(batch); };
    if (limit <= 0) {
      shared_->ready.wait(lock, filled);
      return true;
    }
    if (shared_->ready.wait_for(lock, std::chrono::duration<double>(limit), filled)) return true;
    failure_ = fmt::format("[loader] no batch for {} s: {}", limit, whereabouts());
    return false;
  }

  std::string whereabouts() const {
    std::string text;
    for (size_t i = 0; i < shared_->at.size(); ++i) {
      const int64_t sample = shared_->at[i];
      if (sample < 0) continue;
      text += fmt::format("{}worker {} is at {}", text.empty() ? "" : ", ", i,
                          shared_->maker.name_of(sample));
    }
    return text.empty() ? "no worker is at a sample" : text;
  }

  // A thread that hangs cannot be ended, so after a timeout all threads are detached.
  void end() {
    shared_->replace(nullptr);
    {
      std::lock_guard lock(shared_->mutex);
      shared_->stop = true;
    }
    shared_->issue.notify_all();
    for (std::thread& thread : threads_) failure_.empty() ? thread.join() : thread.detach();
    threads_.clear();
  }

  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
  std::string failure_;
};

}  // namespace

std::unique_ptr<BatchSource> batches_by_threads(const BatchMaker& maker) {
  return std::make_unique<ThreadWorkers>(maker);
}

}  // namespace howmany
