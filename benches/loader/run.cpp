// SPDX-License-Identifier: Apache-2.0
#include "benches/loader/run.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <thread>

#include "benches/loader/page_cache.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/data/image_folder.h"

namespace howmany::benches {
namespace {

constexpr size_t kLooks = 8;  // maximum number of memory readings
constexpr size_t kBlocks = 20, kMinBlocks = 8;
constexpr double kTight = 0.01;  // relative half width at which a run may end early
constexpr double kColdEnough = 0.02;
constexpr double kTimeout = 60;  // seconds of a wait for a batch

double cpu_seconds() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

// Returns `pid` and its children.
std::vector<pid_t> with_children(pid_t pid) {
  std::vector<pid_t> all = {pid};
  std::error_code gone;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), gone)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) all.push_back(child);
  }
  return all;
}

// Proportional set size (PSS): a page shared by several processes counts in part.
double resident_bytes_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/smaps_rollup", pid));
  double kilobytes = 0;
  for (std::string word; file >> word;)
    if (word == "Pss:" && file >> kilobytes) break;
  return 1024 * kilobytes;
}

double resident_bytes() {
  double bytes = 0;
  for (const pid_t process : with_children(::getpid())) bytes += resident_bytes_of(process);
  return bytes;
}

void spin_until(Clock::time_point end) {
  while (Clock::now() < end) {
  }
}

// One measurement. Ranks are threads that synchronize twice per batch. Between the two barriers
// rank 0 records the times and decides when to stop.
class LoaderMeasurement {
 public:
  LoaderMeasurement(const LoaderData& data, const LoaderRun& run)
      : data_(data),
        run_(run),
        set_(run.cold ? data.samples() : data.endless()),
        step_s_(run.demand > 0 ? static_cast<double>(run.batch) / run.demand : 0),
        drop_(ahead(run)),
        waits_(static_cast<size_t>(run.ranks)),
        meet_(run.ranks) {}

  LoaderResult measure() {
    prepare_cache();
    memory_before_ = resident_bytes();
    start_ = Clock::now();
    {
      std::vector<std::jthread> others;
      for (int rank = 1; rank < run_.ranks; ++rank)
        others.emplace_back([this, rank] { consume(rank); });
      consume(0);
    }
    if (error_) std::rethrow_exception(error_);
    finish();
    return std::move(result_);
  }

 private:
  // Returns the number of batches made before the first is taken.
  static size_t ahead(const LoaderRun& run) {
    if (run.cold) return 0;
    return static_cast<size_t>(std::max(1, run.workers * run.prefetch));
  }

  void prepare_cache() {
    if (data_.parts().empty()) return;
    run_.cold ? evict(data_.parts()) : read_in(data_.parts());
    result_.resident_before = resident_fraction(data_.parts()).value_or(-1);
    HM_ENSURE(!run_.cold || result_.resident_before <= kColdEnough,
              "[loader_bench] not cold: {:.0f} % of the pages stayed in memory",
              100 * result_.resident_before);
  }

  void consume(int rank) {
    try {
      Loader loader(set_, {.global_batch = run_.batch * run_.ranks,
                           .workers = run_.workers,
                           .prefetch = run_.prefetch,
                           .seed = run_.seed,
                           .share = {rank, run_.ranks},
                           .device = run_.to,
                           .as = run_.as,
                           .timeout_seconds = kTimeout});
      loader.start_epoch(0);
      while (one_batch(loader, rank)) {
      }
    } catch (...) {
      if (!failed_.exchange(true)) error_ = std::current_exception();
      meet_.arrive_and_drop();
    }
  }

  bool one_batch(Loader& loader, int rank) {
    const Clock::time_point asked = Clock::now();
    const bool more = loader.next().has_value();
    waits_[static_cast<size_t>(rank)] = seconds_since(asked);
    meet_.arrive_and_wait();
    if (rank == 0) note_arrival(more);
    meet_.arrive_and_wait();
    if (failed_ || enough_) return false;
    if (!more) loader.start_epoch(1);  // continue with the same samples
    if (step_s_ > 0) train(rank);
    return true;
  }

  // A training step that keeps a core busy, like the thread that feeds a GPU.
  void train(int rank) {
    const Clock::time_point start = Clock::now();
    spin_until(start +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step_s_)));
    if (rank == 0) spun_ += seconds_since(start);
  }

  void note_arrival(bool more) {
    if (seen_++ == 0) result_.first_batch_s = seconds_since(start_);
    // Reading the memory takes time, in which workers get ahead. Those batches are also taken
    // before timing starts.
    if (const size_t half = drop_ / 2; seen_ <= half && seen_ + kLooks > half) look_at_memory();
    if (seen_ > drop_ + 1) {
      times_.push_back(seconds_since(last_));
      result_.waits.push_back(*std::ranges::max_element(waits_));
    }
    if (seen_ == drop_ + 1) {  // the batches made ahead have been taken
      timing_ = Clock::now();
      cpu_ = cpu_seconds();
      spun_ = 0;
      stages_ = data_.stages();
    }
    last_ = Clock::now();
    enough_ = !more || (timing_ != Clock::time_point{} && done());
    if (!more && !times_.empty()) times_.pop_back(), result_.waits.pop_back();
    if (!enough_) return;
    look_at_memory();
    cpu_ = cpu_seconds() - cpu_;
    stages_ = data_.stages() - stages_;
  }

  // Workers may return memory with each batch, so the maximum counts.
  void look_at_memory() { memory_ = std::max(memory_, resident_bytes()); }

  bool done() {
    const double spent = seconds_since(timing_);
    const bool whole_rounds = times_.size() % round() == 0 && times_.size() >= 2 * round();
    if (run_.cold || times_.size() < kMinBlocks || !whole_rounds) return spent > 4 * run_.budget_s;
    if (spent >= run_.budget_s) return true;
    if (spent < run_.budget_s / 3 || times_.size() % (16 * round()) != 0) return false;
    result_.blocks.converged = relative_half_width(blocks()) < kTight;
    return result_.blocks.converged;
  }

  // Workers may deliver in bursts, so times cover whole rounds of one batch per worker.
  size_t round() const { return static_cast<size_t>(std::max(1, run_.workers)); }

  std::vector<double> blocks() const {
    const size_t count = std::clamp<size_t>(times_.size() / round(), 2, kBlocks);
    return block_means(times_, count);
  }

  void finish() {
    const int workers = std::max(1, run_.workers) * run_.ranks;
    result_.bytes_per_worker = std::max(0.0, memory_ - memory_before_) / workers;
    HM_ENSURE(!times_.empty(), "[loader_bench] {} batches are too few to time", seen_);
    result_.batches = static_cast<int64_t>(times_.size());
    result_.blocks.seconds = times_.size() >= 2 ? blocks() : times_;
    const double total = std::accumulate(times_.begin(), times_.end(), 0.0);
    const auto samples = static_cast<double>(result_.batches * run_.batch * run_.ranks);
    result_.samples_per_s = samples / total;
    result_.stall_fraction =
        std::accumulate(result_.waits.begin(), result_.waits.end(), 0.0) / total;
    result_.cpu_s_per_sample = std::max(0.0, cpu_ - spun_ * run_.ranks) / samples;
    result_.stages = stages_;
  }

  const LoaderData& data_;
  const LoaderRun& run_;
  const Dataset& set_;
  const double step_s_;
  const size_t drop_;
  LoaderResult result_;
  std::vector<double> waits_, times_;
  size_t seen_ = 0;
  double memory_before_ = 0, memory_ = 0;  // bytes
  double cpu_ = 0, spun_ = 0;
  Clock::time_point start_, timing_{}, last_;
  StageTimes stages_;
  bool enough_ = false;
  std::atomic<bool> failed_ = false;
  std::exception_ptr error_;
  std::barrier<> meet_;
};

}  // namespace

std::vector<double> block_means(const std::vector<double>& values, size_t count) {
  const size_t each = values.size() / std::max<size_t>(1, count);
  std::vector<double> means;
  for (size_t b = 0; each > 0 && b < count; ++b) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(b * each);
    means.push_back(std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(each), 0.0) /
                    static_cast<double>(each));
  }
  return means;
}

double relative_half_width(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (values.size() < 2 || !(sum > 0)) return std::numeric_limits<double>::infinity();
  const Interval interval = *mean_interval(values);
  return (interval.high - interval.low) / 2 * static_cast<double>(values.size()) / sum;
}

LoaderResult run_loader(const LoaderData& data, const LoaderRun& run) {
  HM_REQUIRE(run.ranks >= 1 && run.ranks <= 1024 && run.budget_s > 0 && run.demand >= 0,
             "[loader_bench] {} ranks for {} s at {} samples/s", run.ranks, run.budget_s,
             run.demand);
  return LoaderMeasurement(data, run).measure();
}

}  // namespace howmany::benches
