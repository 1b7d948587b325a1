// Batches made by forked processes in memory that they share with the consumer, who copies each
// batch out of it: the cost of workers that cannot harm each other. Tasks go out and results come
// back through one pipe each, in messages small enough to be atomic.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "core/data/batch_source.h"
#include "core/error.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTickMs = 50;  // how often the living are counted
constexpr size_t kText = 1024;
constexpr int64_t kAlignment = 4096;

struct Task {
  int64_t pass, epoch, batch, slot;
};

enum class Outcome : int64_t { filled, failed, abandoned };

struct Result {
  int64_t pass, batch, slot;
  Outcome outcome;
};

int64_t rounded_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Fresh pages shared with the processes forked later. Not a file of /dev/shm, so its size is no
// limit here.
class SharedMemory {
 public:
  explicit SharedMemory(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    HM_ENSURE(data_ != MAP_FAILED, "[loader] no {} bytes of shared memory for batches: {}", bytes,
              std::strerror(errno));
  }
  ~SharedMemory() { ::munmap(data_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::byte* at(int64_t offset) const { return static_cast<std::byte*>(data_) + offset; }

 private:
  void* data_;
  size_t bytes_;
};

class Pipe {
 public:
  Pipe() {
    HM_ENSURE(::pipe2(ends_, O_CLOEXEC) == 0, "[loader] no pipe: {}", std::strerror(errno));
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    for (const int end : ends_) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  template <class Message>
  void write(const Message& message) const {
    while (::write(ends_[1], &message, sizeof message) < 0 && errno == EINTR) {
    }
  }
  // Messages are written whole, so a read of one never sees a part. False when there is none.
  template <class Message>
  bool read(Message& message) const {
    ssize_t n = 0;
    while ((n = ::read(ends_[0], &message, sizeof message)) < 0 && errno == EINTR) {
    }
    return n == static_cast<ssize_t>(sizeof message);
  }
  bool waits(int milliseconds) const {
    pollfd end{ends_[0], POLLIN, 0};
    return ::poll(&end, 1, milliseconds) == 1;
  }

 private:
  int ends_[2];
};

// One for each worker, in shared memory.
struct Place {
  std::atomic<int64_t> sample = -1;
};

std::string how_it_ended(int status) {
  return WIFSIGNALED(status) ? fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                                           strsignal(WTERMSIG(status)))
                             : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

class ProcessWorkers final : public BatchSource {
 public:
  explicit ProcessWorkers(const BatchMaker& maker)
      : maker_(maker),
        window_(int64_t{maker.options().workers} * maker.options().prefetch),
        places_at_(kAlignment),
        texts_at_(places_at_ + rounded_up(int64_t{maker.options().workers} *
                                          static_cast<int64_t>(sizeof(Place)))),
        x_at_(texts_at_ + rounded_up(window_ * static_cast<int64_t>(kText))),
        most_rows_(maker.rows(0)),
        slot_bytes_(rounded_up(most_rows_ * (maker.x_bytes() + maker.y_bytes()))),
        memory_(x_at_ + window_ * slot_bytes_) {
    current_ = new (memory_.at(0)) std::atomic<int64_t>(0);
    for (int i = 0; i < maker.options().workers; ++i) new (&place(i)) Place;
    for (int64_t slot = 0; slot < window_; ++slot) free_.push_back(slot);
    parent_ = ::getpid();
    for (int i = 0; i < maker.options().workers; ++i) fork_one(i);
  }
  ~ProcessWorkers() override { end(); }

  void start(int64_t epoch) override {
    HM_ENSURE(failure_.empty(), "{}", failure_);
    epoch_ = epoch;
    issued_ = delivered_ = 0;
    for (const auto& [batch, result] : ready_) free_.push_back(result.slot);
    ready_.clear();
    ++*current_;  // whoever is at the pass before stops
    issue();
  }

  Batch take(int64_t batch) override {
    HM_ENSURE(failure_.empty(), "{}", failure_);
    const Clock::time_point start = Clock::now();
    while (!ready_.contains(batch)) {
      if (results_.waits(kTickMs)) {
        note_result();
        continue;
      }
      look_for_the_dead();
      look_at_the_clock(start);
    }
    const Result result = ready_.extract(batch).mapped();
    ++delivered_;
    Batch made = copy(result);
    free_.push_back(result.slot);
    issue();
    return made;
  }

 private:
  Place& place(int worker) {
    return *std::launder(reinterpret_cast<Place*>(
        memory_.at(places_at_ + worker * static_cast<int64_t>(sizeof(Place)))));
  }
  char* text(int64_t slot) {
    return reinterpret_cast<char*>(memory_.at(texts_at_ + slot * static_cast<int64_t>(kText)));
  }
  std::byte* x(int64_t slot) { return memory_.at(x_at_ + slot * slot_bytes_); }
  std::byte* y(int64_t slot) { return x(slot) + most_rows_ * maker_.x_bytes(); }

  void fork_one(int worker) {
    const pid_t pid = ::fork();
    if (pid == 0) work(worker);
    if (pid > 0) {
      workers_[pid] = worker;
      return;
    }
    const std::string why = std::strerror(errno);
    end();
    throw Error(fmt::format("[loader] only {} of {} worker processes could be started: {}", worker,
                            maker_.options().workers, why));
  }

  // The child: nothing of the parent's is destroyed, it ends by _exit or a signal.
  [[noreturn]] void work(int worker) {
    ::signal(SIGINT, SIG_IGN);  // Ctrl-C is the parent's to answer
    ::signal(SIGTERM, SIG_DFL);
    std::map<int64_t, Epoch> epoch;  // the one at hand
    for (;;) {
      if (!tasks_.waits(1000)) {
        if (::getppid() != parent_) ::_exit(0);
        continue;
      }
      Task task;
      if (!tasks_.read(task)) continue;  // another worker was faster
      results_.write(done(task, worker, epoch));
    }
  }

  Result done(const Task& task, int worker, std::map<int64_t, Epoch>& epoch) {
    Result result{task.pass, task.batch, task.slot, Outcome::abandoned};
    if (*current_ != task.pass) return result;
    try {
      if (!epoch.contains(task.epoch)) {
        epoch.clear();
        epoch[task.epoch] = maker_.epoch(task.epoch);
      }
      if (make(epoch[task.epoch], task, worker)) result.outcome = Outcome::filled;
    } catch (const std::exception& error) {
      result.outcome = Outcome::failed;
      std::strncpy(text(task.slot), error.what(), kText - 1);
      text(task.slot)[kText - 1] = '\0';
    }
    return result;
  }

  bool make(const Epoch& epoch, const Task& task, int worker) {
    return maker_.fill(epoch, task.batch, x(task.slot), y(task.slot), place(worker).sample,
                       [&] { return *current_ != task.pass; });
  }

  void issue() {
    while (!free_.empty() && issued_ < std::min(maker_.batches(), delivered_ + window_)) {
      tasks_.write(Task{*current_, epoch_, issued_++, free_.back()});
      free_.pop_back();
    }
  }

  void note_result() {
    Result result;
    if (!results_.read(result)) return;
    if (result.pass == *current_ && result.outcome != Outcome::abandoned)
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
    Batch made = maker_.empty(result.batch);
    std::memcpy(made.x.mutable_raw(), x(result.slot), static_cast<size_t>(made.x.bytes()));
    std::memcpy(made.y.mutable_raw(), y(result.slot), static_cast<size_t>(made.y.bytes()));
    return made;
  }

  // A worker that died has its batch with it: the loop cannot go on.
  void look_for_the_dead() {
    for (auto it = workers_.begin(); it != workers_.end(); ++it) {
      const int worker = it->second;
      int status = 0;
      if (::waitpid(it->first, &status, WNOHANG) != it->first) continue;
      workers_.erase(it);
      give_up(fmt::format("[loader] worker {} {} at {}", worker, how_it_ended(status),
                          maker_.name_of(place(worker).sample)));
    }
  }

  void look_at_the_clock(Clock::time_point start) {
    const double limit = maker_.options().timeout_seconds;
    if (limit <= 0 || std::chrono::duration<double>(Clock::now() - start).count() < limit) return;
    std::string where;
    for (const auto& [pid, worker] : workers_) {
      const int64_t sample = place(worker).sample;
      if (sample >= 0)
        where += fmt::format("{}worker {} is at {}", where.empty() ? "" : ", ", worker,
                             maker_.name_of(sample));
    }
    give_up(fmt::format("[loader] no batch for {} s: {}", limit,
                        where.empty() ? "no worker is at a sample" : where));
  }

  [[noreturn]] void give_up(const std::string& why) {
    failure_ = why;
    end();
    throw Error(failure_);
  }

  void end() {
    for (const auto& [pid, worker] : workers_) ::kill(pid, SIGKILL);
    for (const auto& [pid, worker] : workers_)
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    workers_.clear();
  }

  const BatchMaker& maker_;
  const int64_t window_;  // batches ahead
  const int64_t places_at_, texts_at_, x_at_, most_rows_, slot_bytes_;
  SharedMemory memory_;
  Pipe tasks_, results_;
  std::atomic<int64_t>* current_ = nullptr;  // the pass, in shared memory
  pid_t parent_ = 0;
  std::map<pid_t, int> workers_;
  int64_t epoch_ = 0, issued_ = 0, delivered_ = 0;
  std::vector<int64_t> free_;        // slots
  std::map<int64_t, Result> ready_;  // by batch
  std::string failure_;
};

}  // namespace

std::unique_ptr<BatchSource> batches_by_processes(const BatchMaker& maker) {
  return std::make_unique<ProcessWorkers>(maker);
}

}  // namespace howmany
