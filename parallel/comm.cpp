#include "parallel/comm.h"

#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/text/names.h"
#include "core/gpu/gpu.h"
#include "core/profile/range.h"
#include "core/profile/recorder.h"
#include "parallel/comm_list.h"

namespace howmany {
namespace {

// Nobody waits for what is in flight but who reads a loss, and each look is felt by who asks the
// GPU for more.
constexpr std::chrono::microseconds kBetweenLooks(50);

// Of the steady clock, up to 10 ms old: a third of the cost, and timeouts are longer.
std::chrono::steady_clock::time_point coarse_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::steady_clock::time_point(std::chrono::seconds(now.tv_sec) +
                                               std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

CommError::CommError(std::string_view operation, int rank, int size, std::string_view backend,
                     int peer, std::string_view host, double elapsed_seconds, std::string_view why)
    : Error(fmt::format("[{}] rank {} of {} ({}): {}{}{} after {:.1f} s", operation, rank, size,
                        backend, peer >= 0 ? fmt::format("peer {} ", peer) : "",
                        host.empty() ? "" : fmt::format("on {} ", host), why, elapsed_seconds)),
      rank_(rank),
      peer_(peer) {}

struct Work::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false, done = false;
  std::atomic<bool> waited = false;
  int gpu = 0;
  std::shared_ptr<void> end;  // on that GPU, once it was asked for and is not done
  std::unique_ptr<Comm::Failure> failure;

  void fly(int index, std::shared_ptr<void> mark) {
    std::lock_guard lock(mutex);
    gpu = index;
    end = std::move(mark);
    asked = true;
    changed.notify_all();
  }
  void finish(std::unique_ptr<Comm::Failure> how) {
    std::lock_guard lock(mutex);
    failure = std::move(how);
    end = nullptr;
    asked = done = true;
    changed.notify_all();
  }
  // Returns what its GPU still has to wait for.
  std::shared_ptr<void> wait(const bool& stage) {
    std::unique_lock lock(mutex);
    waited = true;
    changed.wait(lock, [&] { return stage; });
    if (failure) failure->raise();
    return end;
  }
};

void Work::wait() {
  if (!state_) return;
  if (const auto end = state_->wait(state_->asked)) gpu::wait_for(state_->gpu, end);
}

void Work::finish() const {
  if (state_) state_->wait(state_->done);
}

bool Work::ready() const {
  if (!state_) return true;
  std::lock_guard lock(state_->mutex);
  return state_->done;
}

struct Comm::Begun {
  const char* operation;
  int64_t bytes;
  std::shared_ptr<void> mark;  // see CommEngine::set_mark
  std::chrono::steady_clock::time_point start = {};
};

struct Comm::Task {
  Begun begun;
  Call call;
  std::shared_ptr<Work::State> state;
  int64_t number = 0;  // of CommEngine::asked()
};

struct Comm::Progress {
  std::mutex mutex;
  std::condition_variable changed, rests;
  std::deque<Task> queue, in_flight;
  bool busy = false;
  bool stopping = false;
  std::unique_ptr<Failure> failure;
  std::atomic<bool> used = false;  // there was an asynchronous call or a failure
  std::jthread thread;  // started by the first asynchronous call, so that it inherits its affinity

  bool resting() const { return queue.empty() && !busy && in_flight.empty(); }
  // Throws what failed before.
  bool idle() {
    if (!used.load(std::memory_order_acquire)) return true;
    std::lock_guard lock(mutex);
    if (failure) failure->raise();
    return resting();
  }
  bool abandoned() const {
    return busy || !queue.empty() ||
           std::ranges::any_of(in_flight, [](const Task& t) { return !t.state->waited; });
  }
};

Comm::Comm(std::unique_ptr<CommEngine> engine)
    : engine_(std::move(engine)),
      rank_(engine_->rank()),
      size_(engine_->size()),
      progress_(std::make_unique<Progress>()) {}

Comm::~Comm() {
  bool abandoned = false;
  {
    std::lock_guard lock(progress_->mutex);
    progress_->stopping = true;
    abandoned = progress_->abandoned();
  }
  if (abandoned) abort("left while an operation was running");
  progress_->changed.notify_all();
  if (progress_->thread.joinable()) progress_->thread.join();
}

std::string_view Comm::backend() const { return engine_->name(); }

std::map<std::string, std::string> Comm::details() const { return engine_->details(); }

Device Comm::home() const { return engine_->home(); }

bool Comm::failed() const {
  std::lock_guard lock(progress_->mutex);
  return progress_->failure != nullptr;
}

void Comm::check_not_failed() const {
  std::lock_guard lock(progress_->mutex);
  if (progress_->failure) progress_->failure->raise();
}

std::unique_ptr<CallFailure> Comm::keep(Failure failure) {
  std::lock_guard lock(progress_->mutex);
  if (!progress_->failure) progress_->failure = std::make_unique<Failure>(std::move(failure));
  progress_->used.store(true, std::memory_order_release);
  return std::make_unique<Failure>(*progress_->failure);
}

void Comm::abort(std::string_view why) {
  keep(Failure(*engine_, "abort", {}, 0, why));
  engine_->abort(why);
}

// Where the device stands now, not when the comm thread comes to it: by then it was asked for more.
std::shared_ptr<void> Comm::mark() const {
  const Device home = engine_->home();
  return home.type == DeviceType::cuda ? gpu::mark(home.index) : nullptr;
}

std::unique_ptr<CallFailure> Comm::guarded(const Begun& begun, const Call& body) {
  const auto failure = [&](std::vector<int> peers, const char* why) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begun.start;
    return keep(Failure(*engine_, begun.operation, std::move(peers), elapsed.count(), why));
  };
  try {
    body();
    return nullptr;
  } catch (const EngineError& e) {
    return failure(e.peers(), e.what());
  } catch (const std::exception& e) {
    engine_->abort(e.what());
    return failure({}, e.what());
  }
}

std::unique_ptr<CallFailure> Comm::attempt(Begun& begun, const Call& call, bool to_its_end) {
  Range range(Category::comm, begun.operation, static_cast<uint64_t>(begun.bytes));
  begun.start = coarse_now();
  return guarded(begun, [&] {
    engine_->set_timeout(timeout_.load(std::memory_order_relaxed));
    engine_->set_call(begun.operation, begun.start);
    engine_->set_mark(begun.mark);
    call();
    if (to_its_end) engine_->finish();
  });
}

void Comm::run_call(const char* operation, int64_t bytes, const Call& call) {
  if (!progress_->idle()) return start(operation, bytes, call).finish();
  Begun begun{operation, bytes, mark()};
  if (const auto failure = attempt(begun, call, true)) failure->raise();
}

Work Comm::start(const char* operation, int64_t bytes, Call call) {
  auto state = std::make_shared<Work::State>();
  Task mine{{operation, bytes, mark()}, std::move(call), state};
  {
    std::lock_guard lock(progress_->mutex);
    if (progress_->failure) progress_->failure->raise();
    progress_->queue.push_back(std::move(mine));
    progress_->used.store(true, std::memory_order_release);
    if (!progress_->thread.joinable())
      progress_->thread = std::jthread([this, track = current_track()] {
        const TrackScope same(track, "communication");
        work_through();
      });
  }
  progress_->changed.notify_all();
  return Work(std::move(state));
}

void Comm::finish() {
  Progress& p = *progress_;
  std::unique_lock lock(p.mutex);
  p.rests.wait(lock, [&p] { return p.resting(); });
  if (p.failure) p.failure->raise();
}

void Comm::work_through() {
  Progress& p = *progress_;
  std::unique_lock lock(p.mutex);
  for (;;) {
    if (p.in_flight.empty())
      p.changed.wait(lock, [&p] { return p.stopping || !p.queue.empty(); });
    else
      p.changed.wait_for(lock, kBetweenLooks, [&p] { return !p.queue.empty(); });
    if (p.resting()) return;
    if (!p.queue.empty()) ask(lock);
    if (!p.in_flight.empty()) look(lock);
    if (p.resting()) p.rests.notify_all();
  }
}

// For what is next in the queue.
void Comm::ask(std::unique_lock<std::mutex>& lock) {
  Progress& p = *progress_;
  Task task = std::move(p.queue.front());
  p.queue.pop_front();
  p.busy = true;
  auto failure = p.failure ? std::make_unique<Failure>(*p.failure) : nullptr;
  lock.unlock();
  if (!failure) failure = attempt(task.begun, task.call, false);
  task.call = nullptr;  // lets go of the buffer before the waiter goes on
  if (failure) ground(failure->why);
  task.number = engine_->asked();
  const auto end = engine_->end();
  lock.lock();
  p.busy = false;
  if (failure) end_all(*failure);
  if (!end) land(task.number);
  if (failure || !end) return task.state->finish(std::move(failure));
  task.state->fly(engine_->home().index, end);
  p.in_flight.push_back(std::move(task));
}

// At what is in flight: nobody else does.
void Comm::look(std::unique_lock<std::mutex>& lock) {
  Progress& p = *progress_;
  int64_t over = 0;
  lock.unlock();
  const auto failure = guarded(p.in_flight.front().begun, [&] { over = engine_->look(); });
  lock.lock();
  land(over);
  if (failure) end_all(*failure);
}

// What failed beside them need not have ended those in flight.
void Comm::ground(std::string_view why) {
  if (!engine_->end()) return;
  engine_->abort(why);
  try {
    engine_->finish();
  } catch (const EngineError&) {
  }
}

void Comm::land(int64_t over) {
  std::deque<Task>& flying = progress_->in_flight;
  for (; !flying.empty() && flying.front().number <= over; flying.pop_front())
    flying.front().state->finish(nullptr);
}

void Comm::end_all(const Failure& failure) {
  for (const Task& task : std::exchange(progress_->in_flight, {}))
    task.state->finish(std::make_unique<Failure>(failure));
}

std::vector<std::string_view> comm_names() {
  return {
#define X(name, what, ...) #name,
      HM_COMMS(X)
#undef X
  };
}

CommTraits comm_traits(std::string_view name) {
#define X(known, what, ...) \
  if (name == #known) return __VA_ARGS__;
  HM_COMMS(X)
#undef X
  throw std::invalid_argument(unknown_name("backend", name, comm_names()));
}

std::string comm_unavailable(std::string_view name, const Place& place) {
  const CommTraits traits = comm_traits(name);
  return traits.unavailable == nullptr ? "" : traits.unavailable(place);
}

std::vector<std::string_view> thread_comm_names(int ranks) {
  std::vector<std::string_view> names = comm_names();
  std::erase_if(names, [&](std::string_view name) {
    const CommTraits traits = comm_traits(name);
    return !traits.threads || (traits.gpus && ranks > gpu::count());
  });
  return names;
}

}  // namespace howmany
