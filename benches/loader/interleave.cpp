// SPDX-License-Identifier: Apache-2.0
// Interleaves loaders, of which only one runs at a time. Each is a process group that is stopped
// and continued at any point of its work. So no work of one loader falls into the time of another,
// and no loader restarts. The samples are counted in shared memory.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <deque>
#include <memory>
#include <new>
#include <thread>

#include "benches/loader/quota_clock.h"
#include "benches/loader/run.h"
#include "core/base/clock.h"
#include "core/base/error.h"

namespace howmany::benches {
namespace {

constexpr int kFewestRounds = 3;
constexpr double kAlone = 0.2;  // seconds of the loader's own measurement, while no other runs
constexpr double kSliceSeconds = 0.1;
// Under a quota a slice has this many whole periods, or these seconds if the kernel does not count
// periods.
constexpr int64_t kPeriods = 2;
constexpr double kSliceOfQuota = 1, kJustNow = 2e-3;
constexpr int64_t kFewestSamples = 4;  // per worker and slice
constexpr double kLookSeconds = 1e-3, kMostBegun = 1, kEnding = 10;

// CPU seconds of a process and its threads. Returns 0 if it has exited.
double cpu_seconds_of(pid_t pid) {
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

// Determines how long a loader runs in its time slice.
class TimeSlice {
 public:
  // Lets a continued loader run until timing may start. Under a quota that is the end of a period.
  // Otherwise it is when all samples in progress are complete, because their waits continued while
  // it was stopped.
  template <typename Made>
  void begin(const Made& all_made) {
    if (!quota_.binds()) return look_until(all_made);
    if (seconds_since(ended_) > kJustNow) quota_.wait(1, kSliceOfQuota);
  }
  void pass() {
    if (!quota_.binds()) return sleep_for(kSliceSeconds);
    const auto start = Clock::now();
    if (!quota_.wait(kPeriods, kSliceOfQuota))
      return sleep_for(std::max(0.0, kSliceOfQuota - seconds_since(start)));
    ended_ = Clock::now();
  }

 private:
  template <typename Condition>
  static void look_until(const Condition& met) {
    for (const auto start = Clock::now(); !met() && seconds_since(start) < kMostBegun;)
      sleep_for(kLookSeconds);
  }

  QuotaClock quota_;
  Clock::time_point ended_;  // of the previous slice's last period
};

struct Shared {
  std::atomic<int64_t> made{0};
  std::atomic<bool> measured{false}, enough{false};
  LoaderResult result;  // without its vectors
  std::array<double, 1024> waits{};
  int64_t waits_told = 0;
  std::array<char, 1000> error{};
};

struct Unmap {
  void operator()(Shared* shared) const { ::munmap(shared, sizeof(Shared)); }
};

std::unique_ptr<Shared, Unmap> shared_memory() {
  void* at =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  HM_ENSURE(at != MAP_FAILED, "[loader_bench] no memory to share: {}", std::strerror(errno));
  return std::unique_ptr<Shared, Unmap>(new (at) Shared);
}

void tell(const LoaderResult& result, Shared& shared) {
  shared.waits_told = std::min(std::ssize(result.waits), std::ssize(shared.waits));
  std::copy_n(result.waits.begin(), shared.waits_told, shared.waits.begin());
  LoaderResult& told = shared.result;
  told.batches = result.batches;
  told.first_batch_s = result.first_batch_s;
  told.cpu_s_per_sample = result.cpu_s_per_sample;
  told.bytes_per_worker = result.bytes_per_worker;
  told.resident_before = result.resident_before;
  told.stages = result.stages;
}

void run_until_enough(const LoaderData& data, LoaderRun run, Shared& shared) try {
  run.budget_s = kAlone;
  run.made = &shared.made;
  run.goes_on = [&](const LoaderResult& result) {
    if (!shared.measured) tell(result, shared);
    shared.measured = true;
    return !shared.enough;
  };
  run_loader(data, run);
} catch (const std::exception& error) {
  std::strncpy(shared.error.data(), error.what(), shared.error.size() - 1);
}

// A loader in its own process group, which ends when this object is destroyed.
class Loading {
 public:
  Loading(const LoaderData& data, const LoaderRun& run) : run_(run), shared_(shared_memory()) {
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    HM_ENSURE(pid_ >= 0, "[loader_bench] no process: {}", std::strerror(errno));
    if (pid_ > 0) return;
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) run_until_enough(data, run, *shared_);
    ::_exit(0);
  }
  ~Loading() {
    shared_->enough = true;
    signal(SIGCONT);
    const auto start = Clock::now();
    while (running() && seconds_since(start) < kEnding) sleep_for(kLookSeconds);
    if (running()) kill();
  }
  Loading(const Loading&) = delete;
  Loading& operator=(const Loading&) = delete;

  // Blocks until the loader has measured itself, then stops it.
  void begin() {
    while (!shared_->measured && running()) sleep_for(kLookSeconds);
    signal(SIGSTOP);
    processes_ = with_children(pid_);
    if (run_.as != WorkersAs::threads && std::ssize(processes_) <= run_.workers * run_.ranks)
      processes_.clear();  // the system does not report the children
  }

  // Runs one time slice and records the seconds per batch.
  void go(TimeSlice& slice) {
    const int64_t begun = std::max(1, run_.workers) * run_.ranks;
    const int64_t stood_at = shared_->made, fewest = kFewestSamples * begun;
    signal(SIGCONT);
    slice.begin([&] { return shared_->made - stood_at >= begun; });
    const double used = cpu_seconds();
    const int64_t before = shared_->made;
    const auto start = Clock::now();
    do slice.pass();
    while (shared_->made - before < fewest && seconds_since(start) < run_.timeout_s && running());
    signal(SIGSTOP);
    const double spent = seconds_since(start);
    const int64_t made = shared_->made - before;
    if (made == 0) return kill();
    slices_.push_back(spent * samples() / static_cast<double>(made));
    if (!processes_.empty()) busy_.push_back(std::max(0.0, cpu_seconds() - used) / spent);
  }

  LoaderOutcome outcome() {
    if (!running()) return {{}, why()};
    LoaderOutcome outcome{shared_->result, {}};
    LoaderResult& result = outcome.result;
    result.waits.assign(shared_->waits.begin(), shared_->waits.begin() + shared_->waits_told);
    result.blocks.seconds = slices_;
    result.samples_per_s = samples() / block_means(slices_, 1).at(0);
    if (busy_.size() == slices_.size()) result.busy_cores = busy_;
    return outcome;
  }

  bool running() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ > 0;
  }

 private:
  // Signals the pid if the process has not created its group yet.
  void signal(int which) {
    if (running() && ::kill(-pid_, which) != 0) ::kill(pid_, which);
  }

  void kill() {
    signal(SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
  }

  double cpu_seconds() const {
    double seconds = 0;
    for (const pid_t process : processes_) seconds += cpu_seconds_of(process);
    return seconds;
  }

  double samples() const { return static_cast<double>(run_.batch * run_.ranks); }

  std::string why() const {
    if (shared_->error[0] != 0) return shared_->error.data();
    if (WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL)
      return fmt::format("the loader was killed, or made no sample in {:.0f} s", run_.timeout_s);
    return WIFSIGNALED(status_) ? fmt::format("signal {} ended the loader", WTERMSIG(status_))
                                : "the loader ended by itself";
  }

  const LoaderRun run_;
  std::unique_ptr<Shared, Unmap> shared_;
  pid_t pid_ = -1;
  int status_ = 0;
  std::vector<double> slices_;    // seconds per batch
  std::vector<double> busy_;      // cores in use, per slice
  std::vector<pid_t> processes_;  // the loader and its workers
};

}  // namespace

std::vector<LoaderOutcome> run_in_turn(const LoaderData& data, const std::vector<LoaderRun>& runs,
                                       double seconds) {
  const auto start = Clock::now();
  std::deque<Loading> all;
  for (const LoaderRun& run : runs) all.emplace_back(data, run).begin();
  TimeSlice slice;
  double round = 0;  // seconds of the last round
  for (int done = 0; done < kFewestRounds || seconds_since(start) + round < seconds; ++done) {
    const auto began = Clock::now();
    // Alternates the order, so that no loader always follows the same one.
    for (size_t i = 0; i < all.size(); ++i)
      if (Loading& one = all[done % 2 == 0 ? i : all.size() - 1 - i]; one.running()) one.go(slice);
    round = seconds_since(began);
  }
  std::vector<LoaderOutcome> outcomes;
  for (Loading& one : all) outcomes.push_back(one.outcome());
  return outcomes;
}

}  // namespace howmany::benches
