// SPDX-License-Identifier: Apache-2.0
// Makes batches as PyTorch's DataLoader does with its default settings on Linux, to measure the
// cost of that design.
//
// Queues. Each forked worker has a queue of batches, assigned round-robin. All share one queue of
//   results, written under one lock.
// Tensors. Each tensor is in new shared memory, with new pages per batch. The consumer fetches its
//   descriptor over a new connection and maps it. With pin_memory a thread does this and copies.
// Not reproduced. The cost of Python (about 20 us per batch and the interpreter's lock), and the
//   feeder thread of a queue.
#include <semaphore.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <optional>
#include <thread>

#include "core/base/error.h"
#include "core/data/workers/shared_memory.h"
#include "core/data/workers/shm_segment.h"
#include "core/data/workers/worker_processes.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAddressBytes = 32;

struct BatchTask {
  int64_t pass, epoch, batch;
};

// The message "the batch is ready", which is sent through the queue instead of the tensors.
struct BatchMessage {
  int64_t pass = 0, batch = 0;
  int32_t worker = 0, failed = 0;
  uint64_t x = 0, y = 0;  // tickets
  uint64_t address_bytes = 0;
  char address[kAddressBytes] = {};
  char why[kWhyBytes] = {};
};

struct Arrived {
  int64_t pass = 0;
  int worker = 0;
  Batch batch;
  std::string why;       // the reason if it failed
  bool unheard = false;  // it failed because the worker did not answer
};

// A semaphore in shared memory, as multiprocessing.Lock.
class SharedLock {
 public:
  explicit SharedLock(const SharedMemory& memory) : semaphore_(new (memory.at(0)) sem_t) {
    ::sem_init(semaphore_, 1, 1);
  }
  ~SharedLock() { ::sem_destroy(semaphore_); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  void lock() {
    while (::sem_wait(semaphore_) != 0 && errno == EINTR) {
    }
  }
  void unlock() { ::sem_post(semaphore_); }

 private:
  sem_t* semaphore_;
};

// The worker's side.
class Worker {
 public:
  Worker(const BatchMaker& maker, WorkerProcesses& processes, int index)
      : maker_(maker), processes_(processes), index_(index), server_(*new SegmentServer) {}

  // Returns nullopt if the task's pass is over.
  std::optional<BatchMessage> make(const BatchTask& task) {
    if (processes_.pass() != task.pass) return {};
    if (pass_ != task.pass) server_.drop_all();  // tensors that were not fetched
    pass_ = task.pass;
    BatchMessage message;
    message.pass = task.pass;
    message.batch = task.batch;
    message.worker = index_;
    try {
      if (!fill(task, message)) return {};
    } catch (const std::exception& error) {
      message.failed = 1;
      write_why(message.why, error.what());
    }
    return message;
  }

 private:
  bool fill(const BatchTask& task, BatchMessage& message) {
    if (!epoch_ || epoch_number_ != task.epoch) epoch_ = maker_.epoch(task.epoch);
    epoch_number_ = task.epoch;
    const int64_t rows = maker_.rows(task.batch);
    Descriptor x = new_segment(rows * maker_.x_bytes()), y = new_segment(rows * maker_.y_bytes());
    {
      const auto at_x = view(x, rows * maker_.x_bytes()), at_y = view(y, rows * maker_.y_bytes());
      if (!maker_.fill(*epoch_, task.batch, static_cast<std::byte*>(at_x.get()),
                       static_cast<std::byte*>(at_y.get()), processes_.sample(index_),
                       [&] { return processes_.pass() != task.pass; }))
        return false;
    }
    message.x = server_.offer(std::move(x));
    message.y = server_.offer(std::move(y));
    message.address_bytes = std::min(server_.address().size(), kAddressBytes);
    std::memcpy(message.address, server_.address().data(), message.address_bytes);
    return true;
  }

  static std::shared_ptr<void> view(const Descriptor& segment, int64_t bytes) {
    return map_segment(Descriptor(::dup(segment.get())), bytes);
  }

  const BatchMaker& maker_;
  WorkerProcesses& processes_;
  const int index_;
  SegmentServer& server_;  // never destroyed
  int64_t pass_ = 0, epoch_number_ = 0;
  std::optional<Epoch> epoch_;
};

// The consumer's side: maps the tensors of a result, and copies them to pinned memory if required.
class Receiver {
 public:
  explicit Receiver(const BatchMaker& maker) : maker_(maker) {}

  Arrived receive(const BatchMessage& message) const {
    Arrived arrived{message.pass, message.worker, {}, {}};
    arrived.batch.number = message.batch;
    if (message.failed != 0) {
      arrived.why = message.why;
      return arrived;
    }
    try {
      arrived.batch = fetch(message);
    } catch (const Error& error) {
      arrived.why = error.what();
      arrived.unheard = true;
    }
    return arrived;
  }

 private:
  Batch fetch(const BatchMessage& message) const {
    const std::string address(message.address, message.address_bytes);
    const int64_t rows = maker_.rows(message.batch);
    const auto x = map_segment(fetch_segment(address, message.x), rows * maker_.x_bytes());
    const auto y = map_segment(fetch_segment(address, message.y), rows * maker_.y_bytes());
    return maker_.options().pin_memory ? maker_.copy_of(message.batch, x.get(), y.get())
                                       : maker_.over(message.batch, x, y);
  }

  const BatchMaker& maker_;
};

// The queue from the pin thread to the consumer.
class Arrivals {
 public:
  void put(Arrived arrived) {
    {
      std::lock_guard lock(mutex_);
      queue_.push_back(std::move(arrived));
    }
    some_.notify_one();
  }
  std::optional<Arrived> take(int milliseconds) {
    std::unique_lock lock(mutex_);
    if (!some_.wait_for(lock, std::chrono::milliseconds(milliseconds),
                        [&] { return !queue_.empty(); }))
      return {};
    Arrived first = std::move(queue_.front());
    queue_.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable some_;
  std::deque<Arrived> queue_;
};

class PytorchWorkers final : public BatchSource {
 public:
  explicit PytorchWorkers(const BatchMaker& maker)
      : maker_(maker),
        receiver_(maker),
        tasks_(static_cast<size_t>(maker.options().workers)),
        load_(tasks_.size()),
        lock_memory_(static_cast<int64_t>(sizeof(sem_t))),
        lock_(lock_memory_),
        processes_(maker) {
    require_room();
    processes_.start([this](int worker) { work(worker); });
    if (maker.options().pin_memory) pin_ = std::thread([this] { pin(); });
  }
  ~PytorchWorkers() override {
    processes_.end();  // before the thread, which may be waiting for one of them
    stop_ = true;
    if (pin_.joinable()) pin_.join();
  }

  void start(int64_t epoch) override {
    processes_.check();
    epoch_ = epoch;
    issued_ = delivered_ = 0;
    ready_.clear();
    std::ranges::fill(load_, 0);
    ++processes_.pass();  // stops the tasks of the previous pass
    issue();
  }

  Batch take(int64_t batch) override {
    processes_.check();
    const Clock::time_point start = Clock::now();
    const bool in_order = maker_.options().in_order;
    while (ready_.empty() || (in_order && !ready_.contains(batch)))
      if (!note_arrival()) processes_.look(start);
    Arrived arrived = std::move(ready_.extract(in_order ? batch : ready_.begin()->first).mapped());
    ++delivered_;
    --load_[static_cast<size_t>(arrived.worker)];
    issue();
    if (arrived.why.empty()) return std::move(arrived.batch);
    processes_.look(start);
    if (arrived.unheard) look_for_its_death();
    throw Error(arrived.why);
  }

 private:
  // A killed process stops answering shortly before its end can be detected.
  void look_for_its_death() {
    const Clock::time_point start = Clock::now();
    while (Clock::now() - start < std::chrono::seconds(1)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      processes_.look(start);
    }
  }

  int64_t window() const { return int64_t{maker_.options().workers} * maker_.options().prefetch; }

  // Requires shared memory for every batch of the window and those being made.
  void require_room() const {
    const int64_t batches = window() + maker_.options().workers;
    const int64_t each = maker_.rows(0) * (maker_.x_bytes() + maker_.y_bytes()), left = shm_left();
    HM_ENSURE(each <= left / batches,
              "[loader] {} has {} bytes left, {} batches of {} bytes need {}: fewer workers, less "
              "prefetch or smaller batches, or a larger {} (docker run --shm-size)",
              kShmFolder, left, batches, each, batches * each, kShmFolder);
  }

  void work(int index) {
    Worker worker(maker_, processes_, index);
    const Pipe& tasks = tasks_[static_cast<size_t>(index)];
    while (!processes_.orphaned()) {
      BatchTask task;
      if (!tasks.waits(1000) || !tasks.read(task)) continue;
      const std::optional<BatchMessage> message = worker.make(task);
      if (!message) continue;
      std::lock_guard lock(lock_);
      results_.write(*message);
    }
  }

  void issue() {
    while (issued_ < std::min(maker_.batches(), delivered_ + window())) {
      const size_t worker = next_worker();
      ++load_[worker];
      tasks_[worker].write(BatchTask{processes_.pass(), epoch_, issued_++});
    }
  }

  // Round-robin. If order does not matter, skips workers that have their full number of batches.
  size_t next_worker() {
    size_t worker = next_++ % load_.size();
    if (maker_.options().in_order) return static_cast<size_t>(issued_) % load_.size();
    while (load_[worker] >= maker_.options().prefetch) worker = next_++ % load_.size();
    return worker;
  }

  std::optional<Arrived> receive() {
    BatchMessage message;
    if (!results_.waits(kTickMs) || !results_.read(message)) return {};
    return receiver_.receive(message);
  }

  void pin() {
    while (!stop_)
      if (auto arrived = receive()) arrivals_.put(std::move(*arrived));
  }

  // Returns false if none arrived for a while.
  bool note_arrival() {
    auto arrived = pin_.joinable() ? arrivals_.take(kTickMs) : receive();
    if (!arrived) return false;
    if (arrived->pass == processes_.pass()) {
      const int64_t batch = arrived->batch.number;
      ready_.insert_or_assign(batch, std::move(*arrived));
    }
    return true;
  }

  const BatchMaker& maker_;
  const Receiver receiver_;
  std::vector<Pipe> tasks_;
  Pipe results_;
  std::vector<int> load_;  // pending batches per worker
  SharedMemory lock_memory_;
  SharedLock lock_;
  Arrivals arrivals_;
  std::atomic<bool> stop_ = false;
  std::thread pin_;
  int64_t epoch_ = 0, issued_ = 0, delivered_ = 0;
  size_t next_ = 0;
  std::map<int64_t, Arrived> ready_;
  WorkerProcesses processes_;
};

}  // namespace

std::unique_ptr<BatchSource> batches_as_pytorch(const BatchMaker& maker) {
  return std::make_unique<PytorchWorkers>(maker);
}

}  // namespace howmany
