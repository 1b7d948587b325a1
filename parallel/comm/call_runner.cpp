// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/call_runner.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "core/gpu/event.h"
#include "core/gpu/gpu.h"
#include "core/profile/range.h"
#include "core/profile/recorder.h"

namespace howmany {
namespace {

// Each poll disturbs the thread that submits work to the GPU, and only finish() waits for the host.
constexpr std::chrono::microseconds kPollInterval(50);

// Returns the steady clock's time as of the last timer tick, at most 10 ms ago. Timeouts need no
// more, and it is cheaper: no read of the hardware's counter.
std::chrono::steady_clock::time_point coarse_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::steady_clock::time_point(std::chrono::seconds(now.tv_sec) +
                                               std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

struct Work::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool submitted = false, done = false;
  CommEngine::Queued queued;
  int gpu = 0;
  std::shared_ptr<void> end;  // event on that GPU while the call is in flight
  std::unique_ptr<CallFailure> failure;

  void mark_in_flight(int index, std::shared_ptr<void> event) {
    std::lock_guard lock(mutex);
    gpu = index;
    end = std::move(event);
    submitted = true;
    changed.notify_all();
  }
  void complete(std::unique_ptr<CallFailure> how) {
    std::lock_guard lock(mutex);
    failure = std::move(how);
    end = nullptr;
    submitted = done = true;
    changed.notify_all();
  }
  // Returns the event that the GPU must still wait for, or null.
  std::shared_ptr<void> wait(const bool& stage) {
    queued.waited = true;
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stage; });
    if (queued.clock) {
      queued.clock->charge(queued.core.exchange(0));
      queued.clock->wait_until(queued.end);
    }
    if (failure) failure->raise();
    return end;
  }
};

void Work::wait() {
  if (!state_) return;
  if (const auto end = state_->wait(state_->submitted)) gpu::wait_for(state_->gpu, end);
}

void Work::finish() const {
  if (state_) state_->wait(state_->done);
}

bool Work::ready() const {
  if (!state_) return true;
  std::lock_guard lock(state_->mutex);
  const CommEngine::Queued& queued = state_->queued;
  return state_->done && (!queued.clock || queued.clock->now() >= queued.end);
}

CallRunner::~CallRunner() {
  bool abandoned = false;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    abandoned = has_abandoned_calls();
  }
  if (abandoned) abort("left while an operation was running");
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool CallRunner::is_idle() const { return queue_.empty() && !busy_ && in_flight_.empty(); }

bool CallRunner::has_abandoned_calls() const {
  return busy_ || !queue_.empty() ||
         std::ranges::any_of(in_flight_, [](const Task& t) { return !t.state->queued.waited; });
}

// Throws the first failure.
bool CallRunner::can_run_here() {
  if (!was_used_.load(std::memory_order_acquire)) return true;
  std::lock_guard lock(mutex_);
  if (failure_) failure_->raise();
  return is_idle();
}

bool CallRunner::failed() const {
  std::lock_guard lock(mutex_);
  return failure_ != nullptr;
}

void CallRunner::check_not_failed() const {
  std::lock_guard lock(mutex_);
  if (failure_) failure_->raise();
}

std::unique_ptr<CallFailure> CallRunner::record_failure(Failure failure) {
  std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::make_unique<Failure>(std::move(failure));
  was_used_.store(true, std::memory_order_release);
  return std::make_unique<Failure>(*failure_);
}

void CallRunner::abort(std::string_view why) {
  record_failure(Failure(engine_, "abort", {}, 0, why));
  engine_.abort(why);
}

// Recorded when the call is made: by the time that the comm thread runs it, more is submitted.
std::shared_ptr<void> CallRunner::start_event() const {
  const Device native = engine_.native_device();
  return native.type == DeviceType::cuda ? gpu::record_event(native.index) : nullptr;
}

template <typename Body>
std::unique_ptr<CallFailure> CallRunner::failure_of(const Info& info, const Body& body) {
  const auto failure = [&](std::vector<int> peers, const std::string& why) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - info.start;
    return record_failure(Failure(engine_, info.operation, std::move(peers), elapsed.count(), why));
  };
  try {
    body();
    return nullptr;
  } catch (const EngineError& e) {
    return failure(e.peers(), e.what());
  } catch (const std::exception& e) {
    engine_.abort(reason_of(e));
    return failure({}, reason_of(e));
  }
}

std::unique_ptr<CallFailure> CallRunner::attempt(Info& info, const Call& call, bool to_completion) {
  Range range(Category::comm, info.operation, static_cast<uint64_t>(info.bytes));
  info.start = coarse_now();
  return failure_of(info, [&] {
    engine_.set_call(info.operation, info.start, timeout_.load(std::memory_order_relaxed));
    engine_.set_queued(info.queued);
    engine_.set_start_event(info.start_event);
    call();
    if (to_completion) engine_.finish();
  });
}

void CallRunner::run_call(const char* operation, int64_t bytes, const Call& call) {
  if (!can_run_here()) return start(operation, bytes, call).finish();
  Info info{operation, bytes, start_event()};
  if (const auto failure = attempt(info, call, true)) failure->raise();
}

Work CallRunner::start(const char* operation, int64_t bytes, Call call) {
  auto state = std::make_shared<Work::State>();
  state->queued.clock = engine_.clock();
  if (state->queued.clock) state->queued.at = state->queued.clock->now();
  std::shared_ptr<const CommEngine::Queued> queued(state, &state->queued);
  Task task{{operation, bytes, start_event(), std::move(queued)}, std::move(call), state};
  {
    std::lock_guard lock(mutex_);
    if (failure_) failure_->raise();
    queue_.push_back(std::move(task));
    was_used_.store(true, std::memory_order_release);
    if (!thread_.joinable())
      thread_ = std::jthread([this, track = current_track()] {
        const TrackScope same(track, "communication");
        run_queue();
      });
  }
  changed_.notify_all();
  return Work(std::move(state));
}

void CallRunner::finish() {
  std::unique_lock lock(mutex_);
  became_idle_.wait(lock, [this] { return is_idle(); });
  if (failure_) failure_->raise();
}

void CallRunner::run_queue() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (in_flight_.empty())
      changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    else
      changed_.wait_for(lock, kPollInterval, [this] { return !queue_.empty(); });
    if (is_idle()) return;
    if (!queue_.empty()) submit_next(lock);
    if (!in_flight_.empty()) poll_in_flight(lock);
    if (is_idle()) became_idle_.notify_all();
  }
}

void CallRunner::submit_next(Lock& lock) {
  Task task = std::move(queue_.front());
  queue_.pop_front();
  busy_ = true;
  auto failure = failure_ ? std::make_unique<Failure>(*failure_) : nullptr;
  lock.unlock();
  if (!failure) failure = attempt(task.info, task.call, false);
  task.call = nullptr;  // releases the buffer before the waiter continues
  if (failure) abort_in_flight(failure->why);
  task.number = engine_.submitted();
  const auto end = engine_.last_event();
  lock.lock();
  busy_ = false;
  if (failure) fail_in_flight(*failure);
  if (!end) retire(task.number);
  if (failure || !end) return task.state->complete(std::move(failure));
  task.state->mark_in_flight(engine_.native_device().index, end);
  in_flight_.push_back(std::move(task));
}

void CallRunner::poll_in_flight(Lock& lock) {
  int64_t completed = 0;
  lock.unlock();
  const auto failure = failure_of(in_flight_.front().info, [&] { completed = engine_.poll(); });
  lock.lock();
  retire(completed);
  if (failure) fail_in_flight(*failure);
}

// After a failure that need not have ended the calls in flight.
void CallRunner::abort_in_flight(std::string_view why) {
  if (!engine_.last_event()) return;
  engine_.abort(why);
  try {
    engine_.finish();
  } catch (const EngineError&) {
  }
}

void CallRunner::retire(int64_t completed) {
  for (; !in_flight_.empty() && in_flight_.front().number <= completed; in_flight_.pop_front())
    in_flight_.front().state->complete(nullptr);
}

void CallRunner::fail_in_flight(const Failure& failure) {
  for (const Task& task : std::exchange(in_flight_, {}))
    task.state->complete(std::make_unique<Failure>(failure));
}

}  // namespace howmany
