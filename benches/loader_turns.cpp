// Whose turn it is among loaders that are alive at once.
#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "benches/loader_run.h"
#include "core/clock.h"
#include "core/cpu_limits.h"

namespace howmany::benches {
namespace {

constexpr int kFewestRounds = 3;
constexpr double kStretch = 0.2;
// A quota is dealt out by the tenth of a second: what fits into a few such periods is luck.
constexpr double kStretchOfQuota = 1;

// There and back, so that none always follows the same other. One that has ended must leave.
class Rota {
 public:
  Rota(size_t runs, double seconds) : there_(runs, true), seconds_(seconds) {}

  void wait_for(size_t run) {
    std::unique_lock lock(mutex_);
    turns_.wait(lock, [&] { return at_ == run; });
  }

  // To the next one; returns in the run's next turn whether there is time for a stretch.
  bool pass(size_t run) {
    {
      const std::lock_guard lock(mutex_);
      step();
    }
    wait_for(run);
    return !over_;
  }

  void leave(size_t run) {
    const std::lock_guard lock(mutex_);
    there_[run] = false;
    if (std::ranges::any_of(there_, std::identity())) step();
  }

 private:
  void step() {
    do {
      const bool at_an_end = forward_ ? at_ + 1 == there_.size() : at_ == 0;
      if (at_an_end)
        turn_round();
      else
        at_ += forward_ ? 1 : -1;
    } while (!there_[at_]);
    turns_.notify_all();
  }

  void turn_round() {
    forward_ = !forward_;
    const double now = seconds_since(start_);
    over_ = over_ || (++rounds_ >= kFewestRounds && 2 * now - round_began_ > seconds_);
    round_began_ = now;
  }

  std::mutex mutex_;
  std::condition_variable turns_;
  std::vector<bool> there_;
  size_t at_ = 0;
  bool forward_ = true, over_ = false;
  int rounds_ = 0;
  const double seconds_;
  const Clock::time_point start_ = Clock::now();
  double round_began_ = 0;  // seconds from the start
};

double stretch_seconds() {
  const auto cores = static_cast<double>(cpu_limits().allowed.size());
  const auto binds = [&](const CpuLimit& limit) {
    const bool quota = limit.source == "cgroup v2 cpu.max" || limit.source == "cgroup v1 quota";
    return quota && limit.cpus < cores;
  };
  return std::ranges::any_of(cpu_limits().limits, binds) ? kStretchOfQuota : kStretch;
}

LoaderOutcome outcome_of(const LoaderData& data, const LoaderRun& run) try {
  return {run_loader(data, run), {}};
} catch (const std::exception& error) {
  return {{}, error.what()};
}

}  // namespace

std::vector<LoaderOutcome> run_in_turn(const LoaderData& data, const std::vector<LoaderRun>& runs,
                                       double seconds) {
  std::vector<LoaderOutcome> outcomes(runs.size());
  Rota rota(runs.size(), seconds);
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < runs.size(); ++i)
    threads.emplace_back([&, i] {
      LoaderRun run = runs[i];
      run.budget_s = stretch_seconds();
      run.next_stretch = [&rota, i] { return rota.pass(i); };
      rota.wait_for(i);
      outcomes[i] = outcome_of(data, run);
      rota.leave(i);
    });
  threads.clear();
  return outcomes;
}

}  // namespace howmany::benches
