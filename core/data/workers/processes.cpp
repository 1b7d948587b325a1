// SPDX-License-Identifier: Apache-2.0
// Forked processes make batches in memory that they share with the consumer. The consumer copies
// each batch, which is the cost of isolated workers. There is one pipe for tasks and one for
// results.
#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/data/workers/shared_memory.h"
#include "core/data/workers/worker_processes.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kPageBytes = 4096;

struct Task {
  int64_t pass, epoch, batch, slot;
};

enum class Outcome : int64_t { filled, failed, abandoned };

struct Result {
  int64_t pass, batch, slot;
  Outcome outcome;
};

int64_t rounded_to_pages(int64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

class ProcessWorkers final : public BatchSource {
 public:
  explicit ProcessWorkers(const BatchMaker& maker)
      : maker_(maker),
        window_(int64_t{maker.options().workers} * maker.options().prefetch),
        x_at_(rounded_to_pages(window_ * static_cast<int64_t>(kWhyBytes))),
        most_rows_(maker.rows(0)),
        slot_bytes_(rounded_to_pages(most_rows_ * (maker.x_bytes() + maker.y_bytes()))),
        memory_(x_at_ + window_ * slot_bytes_),
        processes_(maker) {
    for (int64_t slot = 0; slot < window_; ++slot) free_.push_back(slot);
    processes_.start([this](int worker) { work(worker); });
  }

  void start(int64_t epoch) override {
    processes_.check();
    epoch_ = epoch;
    issued_ = delivered_ = 0;
    for (const auto& [batch, result] : ready_) free_.push_back(result.slot);
    ready_.clear();
    ++processes_.pass();  // stops the tasks of the previous pass
    issue();
  }

  Batch take(int64_t batch) override {
    processes_.check();
    const Clock::time_point start = Clock::now();
    const bool in_order = maker_.options().in_order;
    while (ready_.empty() || (in_order && !ready_.contains(batch))) {
      if (results_.waits(kTickMs))
        note_result();
      else
        processes_.look(start);
    }
    const Result result = ready_.extract(in_order ? batch : ready_.begin()->first).mapped();
    ++delivered_;
    Batch made = copy(result);
    free_.push_back(result.slot);
    issue();
    return made;
  }

 private:
  char* text(int64_t slot) {
    return reinterpret_cast<char*>(memory_.at(slot * static_cast<int64_t>(kWhyBytes)));
  }
  std::byte* x(int64_t slot) { return memory_.at(x_at_ + slot * slot_bytes_); }
  std::byte* y(int64_t slot) { return x(slot) + most_rows_ * maker_.x_bytes(); }

  void work(int worker) {
    std::map<int64_t, Epoch> epoch;  // the current one
    while (!processes_.orphaned()) {
      Task task;
      // Another worker may have taken the task.
      if (tasks_.waits(1000) && tasks_.read(task)) results_.write(done(task, worker, epoch));
    }
  }

  Result done(const Task& task, int worker, std::map<int64_t, Epoch>& epoch) {
    Result result{task.pass, task.batch, task.slot, Outcome::abandoned};
    if (processes_.pass() != task.pass) return result;
    try {
      if (!epoch.contains(task.epoch)) {
        epoch.clear();
        epoch[task.epoch] = maker_.epoch(task.epoch);
      }
      if (make(epoch[task.epoch], task, worker)) result.outcome = Outcome::filled;
    } catch (const std::exception& error) {
      result.outcome = Outcome::failed;
      write_why(text(task.slot), error.what());
    }
    return result;
  }

  bool make(const Epoch& epoch, const Task& task, int worker) {
    return maker_.fill(epoch, task.batch, x(task.slot), y(task.slot), processes_.sample(worker),
                       [&] { return processes_.pass() != task.pass; });
  }

  void issue() {
    while (!free_.empty() && issued_ < std::min(maker_.batches(), delivered_ + window_)) {
      tasks_.write(Task{processes_.pass(), epoch_, issued_++, free_.back()});
      free_.pop_back();
    }
  }

  void note_result() {
    Result result;
    if (!results_.read(result)) return;
    if (result.pass == processes_.pass() && result.outcome != Outcome::abandoned)
      ready_[result.batch] = result;
    else
      free_.push_back(result.slot);
    issue();
  }

  Batch copy(const Result& result) {
    if (result.outcome == Outcome::failed) {
      const std::string why = text(result.slot);
      free_.push_back(result.slot);
      issue();
      throw Error(why);
    }
    return maker_.copy_of(result.batch, x(result.slot), y(result.slot));
  }

  const BatchMaker& maker_;
  const int64_t window_;  // prefetched batches
  const int64_t x_at_, most_rows_, slot_bytes_;
  SharedMemory memory_;
  Pipe tasks_, results_;
  int64_t epoch_ = 0, issued_ = 0, delivered_ = 0;
  std::vector<int64_t> free_;        // slots
  std::map<int64_t, Result> ready_;  // by batch
  WorkerProcesses processes_;        // last member: destroyed before the members that it uses
};

}  // namespace

std::unique_ptr<BatchSource> batches_by_processes(const BatchMaker& maker) {
  return std::make_unique<ProcessWorkers>(maker);
}

}  // namespace howmany
