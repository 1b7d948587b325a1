// SPDX-License-Identifier: Apache-2.0
#include "core/data/workers/worker_processes.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "core/base/error.h"

namespace howmany {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kFirstPlace = 64;  // offset of the first Place, after the pass counter

std::string how_it_ended(int status) {
  return WIFSIGNALED(status) ? fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                                           strsignal(WTERMSIG(status)))
                             : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

void write_why(char* to, const std::string& why) {
  const size_t n = std::min(why.size(), kWhyBytes - 1);
  std::memcpy(to, why.data(), n);
  to[n] = '\0';
}

WorkerProcesses::WorkerProcesses(const BatchMaker& maker)
    : maker_(maker),
      memory_(kFirstPlace + maker.options().workers * static_cast<int64_t>(sizeof(Place))),
      pass_(new (memory_.at(0)) std::atomic<int64_t>(0)),
      parent_(::getpid()) {
  for (int i = 0; i < maker.options().workers; ++i)
    new (memory_.at(kFirstPlace + i * static_cast<int64_t>(sizeof(Place)))) Place;
}

WorkerProcesses::Place& WorkerProcesses::place(int worker) {
  return *std::launder(reinterpret_cast<Place*>(
      memory_.at(kFirstPlace + worker * static_cast<int64_t>(sizeof(Place)))));
}

void WorkerProcesses::start(const std::function<void(int)>& body) {
  const int wanted = maker_.options().workers;
  for (int worker = 0; worker < wanted; ++worker) {
    const pid_t pid = ::fork();
    if (pid == 0) work(worker, body);
    if (pid > 0) {
      workers_[pid] = worker;
      continue;
    }
    const std::string why = std::strerror(errno);
    end();
    throw Error(fmt::format("[loader] only {} of {} worker processes could be started: {}", worker,
                            wanted, why));
  }
}

// Runs in the child. Ends by _exit or a signal, so that no object of the parent is destroyed.
void WorkerProcesses::work(int worker, const std::function<void(int)>& body) {
  ::signal(SIGINT, SIG_IGN);  // the parent handles Ctrl-C
  ::signal(SIGTERM, SIG_DFL);
  try {
    maker_.init_worker(worker);
    body(worker);
  } catch (const std::exception& error) {
    write_why(place(worker).unable, error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

void WorkerProcesses::check() const { HM_ENSURE(failure_.empty(), "{}", failure_); }

void WorkerProcesses::look(Clock::time_point start) {
  look_for_the_dead();
  look_at_the_clock(start);
}

// A worker that died has lost its batch, so the epoch cannot continue.
void WorkerProcesses::look_for_the_dead() {
  for (auto it = workers_.begin(); it != workers_.end(); ++it) {
    const int worker = it->second;
    int status = 0;
    if (::waitpid(it->first, &status, WNOHANG) != it->first) continue;
    workers_.erase(it);
    if (place(worker).unable[0] != '\0') give_up(place(worker).unable);
    give_up(fmt::format("[loader] worker {} {} at {}", worker, how_it_ended(status),
                        maker_.name_of(place(worker).sample)));
  }
}

void WorkerProcesses::look_at_the_clock(Clock::time_point start) {
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

void WorkerProcesses::give_up(const std::string& why) {
  failure_ = why;
  end();
  throw Error(failure_);
}

void WorkerProcesses::end() {
  for (const auto& [pid, worker] : workers_) ::kill(pid, SIGKILL);
  for (const auto& [pid, worker] : workers_)
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  workers_.clear();
}

}  // namespace howmany
