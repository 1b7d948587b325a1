// SPDX-License-Identifier: Apache-2.0
// Runs the calls of one Comm on its engine, one at a time and in order, and keeps the first
// failure.
//
// Blocking calls run on the calling thread if no call is pending, else on the comm thread, after
// the pending calls. Asynchronous calls run on the comm thread, which starts with the first of
// them. On a GPU, a call is then submitted, and in flight until poll() reports it complete. Thread
// safety: as Comm's.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "parallel/comm/engine.h"

namespace howmany {

class CallRunner {
 public:
  using Call = std::function<void()>;

  explicit CallRunner(CommEngine& engine) : engine_(engine) {}
  // Aborts the engine if a call is running or was never waited for.
  ~CallRunner();

  void set_timeout(std::chrono::milliseconds timeout) { timeout_ = timeout; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Blocks until the call completes. Throws CommError. `operation` is a literal.
  template <typename Body>
  void run(const char* operation, int64_t bytes, const Body& body) {
    run_call(operation, bytes, std::cref(body));  // which allocates nothing
  }
  Work start(const char* operation, int64_t bytes, Call call);
  void finish();  // see Comm::finish()
  void abort(std::string_view why);
  bool failed() const;
  void check_not_failed() const;  // throws the first failure

 private:
  struct Info {
    const char* operation;
    int64_t bytes;
    std::shared_ptr<void> start_event;                      // see CommEngine::set_start_event()
    std::shared_ptr<const CommEngine::Queued> queued = {};  // see CommEngine::set_queued()
    Clock::time_point start = {};
  };
  struct Task {
    Info info;
    Call call;
    std::shared_ptr<Work::State> state;
    int64_t number = 0;  // of CommEngine::submitted()
  };
  using Failure = CallFailure;
  using Lock = std::unique_lock<std::mutex>;

  void run_call(const char* operation, int64_t bytes, const Call& call);
  std::unique_ptr<Failure> attempt(Info& info, const Call& call, bool to_completion);
  template <typename Body>
  std::unique_ptr<Failure> failure_of(const Info& info, const Body& body);
  std::unique_ptr<Failure> record_failure(Failure failure);
  std::shared_ptr<void> start_event() const;
  bool can_run_here();
  bool is_idle() const;
  bool has_abandoned_calls() const;

  // On the comm thread.
  void run_queue();
  void submit_next(Lock& lock);
  void poll_in_flight(Lock& lock);
  void abort_in_flight(std::string_view why);
  void retire(int64_t completed);
  void fail_in_flight(const Failure& failure);

  CommEngine& engine_;
  std::atomic<std::chrono::milliseconds> timeout_{std::chrono::milliseconds(30'000)};

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_, became_idle_;
  std::deque<Task> queue_, in_flight_;
  bool busy_ = false, stopping_ = false;
  std::unique_ptr<Failure> failure_;
  std::atomic<bool> was_used_ = false;  // false: no asynchronous call and no failure so far
  std::jthread thread_;  // started by the first asynchronous call, whose affinity it inherits
};

}  // namespace howmany
