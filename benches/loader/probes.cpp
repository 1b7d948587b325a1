// SPDX-License-Identifier: Apache-2.0
#include "benches/loader/probes.h"

#include <sys/resource.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <latch>
#include <numeric>
#include <thread>

#include "benches/loader/page_cache.h"
#include "benches/loader/run.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "core/data/image_folder.h"
#include "core/data/images/file.h"
#include "core/data/loader.h"

namespace howmany::benches {
namespace {

// Times body() until the budget is spent, at least `fewest` times (or until four times the budget),
// after one untimed call.
Samples time_alone(double budget_s, int fewest, const std::function<void()>& body) {
  body();
  Samples samples;
  double spent = 0;
  while (spent < budget_s || samples.seconds.size() < static_cast<size_t>(fewest)) {
    const Clock::time_point start = Clock::now();
    body();
    samples.seconds.push_back(seconds_since(start));
    spent += samples.seconds.back();
    if (samples.seconds.size() >= 2 && spent > 4 * budget_s) break;
  }
  return samples;
}

// Voluntary context switches of the calling thread, which it makes to wait. Preemption by the
// system or a quota does not count.
int64_t times_core_was_let_go() {
  rusage use{};
  ::getrusage(RUSAGE_THREAD, &use);
  return use.ru_nvcsw;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The stages were timed in calls that took `call_s` in total, warm-up included. Their shares of it
// are applied to the time of a sample, so that they add up.
void add_stages(const StageTimes& t, double call_s, double sample_s,
                std::map<std::string, double>& counters) {
  if (t.samples == 0) return;
  const auto n = static_cast<double>(t.samples);
  const double scale = sample_s / call_s;
  counters[metric::kReadS] = t.read_s * scale;
  counters[metric::kDecodeS] = t.decode_s * scale;
  counters[metric::kTransformS] = t.transform_s * scale;
  counters[metric::kRestS] =
      std::max(0.0, sample_s - (t.read_s + t.decode_s + t.transform_s) * scale);
  counters[metric::kFileBytes] = static_cast<double>(t.file_bytes) / n;
  counters[metric::kPixels] = static_cast<double>(t.pixels) / n;
}

// Several threads take files from a shared counter until none is left or the time is up.
class Reading {
 public:
  Reading(const std::vector<std::string>& files, bool once, double budget_s)
      : files_(files), once_(once), budget_s_(budget_s) {}

  void run(int threads) {
    start_ = Clock::now();
    {
      std::vector<std::jthread> team;
      for (int i = 0; i < threads; ++i) team.emplace_back([this] { read(); });
    }
    seconds_ = seconds_since(start_);
  }
  double seconds() const { return seconds_; }
  int64_t files() const { return done_; }
  int64_t bytes() const { return bytes_; }

 private:
  void read() {
    std::vector<uint8_t> buffer;
    for (size_t i = next_++; goes_on(i); i = next_++) {
      try {
        image::read_file(files_[i % files_.size()], int64_t{1} << 40, buffer);
      } catch (const Error&) {
        continue;  // removed since it was listed; not an error here
      }
      bytes_ += static_cast<int64_t>(buffer.size());
      ++done_;
    }
  }

  // Reads at least one file, even if the threads started late.
  bool goes_on(size_t i) const {
    const bool is_new = i < files_.size();
    return (is_new && done_ == 0) || (seconds_since(start_) < budget_s_ && (is_new || !once_));
  }

  const std::vector<std::string>& files_;
  const bool once_;
  const double budget_s_;
  Clock::time_point start_;
  double seconds_ = 0;
  std::atomic<size_t> next_ = 0;
  std::atomic<int64_t> done_ = 0, bytes_ = 0;
};

// Additions that the compiler cannot remove and that do not depend on memory.
uint64_t spin_for(double seconds) {
  const Clock::time_point start = Clock::now();
  uint64_t rounds = 0;
  volatile uint64_t value = 1;
  for (; seconds_since(start) < seconds; ++rounds)
    for (int i = 0; i < 20'000; ++i) value = value * 3 + 1;
  return rounds;
}

uint64_t spin_together(int threads, double seconds) {
  std::atomic<uint64_t> rounds = 0;
  std::latch ready(threads);
  std::vector<std::jthread> team;
  for (int i = 0; i < threads; ++i)
    team.emplace_back([&] {
      ready.arrive_and_wait();
      rounds += spin_for(seconds);
    });
  team.clear();
  return rounds;
}

}  // namespace

Probed probe_solo(const LoaderData& data, int64_t batch, double budget_s) {
  if (!data.files().empty()) read_in(data.files());
  Loader loader(data.endless(), {.global_batch = batch, .workers = 0});
  loader.start_epoch(0);
  loader.next();
  const StageTimes before = data.stages();
  const int64_t let_go = times_core_was_let_go();
  Probed probed;
  double call_s = 0, on_core_s = 0;
  int64_t calls = 0;
  probed.samples = time_alone(budget_s, 6, [&] {
    const Clock::time_point start = Clock::now();
    const double core_start = thread_seconds();
    loader.next();
    call_s += seconds_since(start);
    ++calls;
    on_core_s += thread_seconds() - core_start;
  });
  const StageTimes stages = data.stages() - before;
  const double sample_s = mean(probed.samples.seconds) / static_cast<double>(batch);
  probed.counters = {{metric::kSamplesPerS, 1 / sample_s},
                     {metric::kSampleS, sample_s},
                     {metric::kOnCoreS, sample_s * on_core_s / call_s},
                     {metric::kLetsGoOfCore, static_cast<double>(times_core_was_let_go() - let_go) /
                                                 static_cast<double>(calls * batch)},
                     {metric::kSampleBytes, static_cast<double>(data.sample_bytes())}};
  add_stages(stages, call_s, sample_s, probed.counters);
  return probed;
}

Probed probe_worker(const LoaderData& data, int64_t batch, WorkersAs as, double budget_s) {
  if (!data.files().empty()) read_in(data.files());
  Loader loader(data.endless(), {.global_batch = batch, .workers = 1, .as = as});
  loader.start_epoch(0);
  for (int ahead = 0; ahead < 3; ++ahead) loader.next();
  Probed probed;
  probed.samples = time_alone(budget_s, 6, [&] { loader.next(); });
  const double sample_s = mean(probed.samples.seconds) / static_cast<double>(batch);
  probed.counters = {{metric::kSamplesPerS, 1 / sample_s}, {metric::kSampleS, sample_s}};
  return probed;
}

Probed probe_handover(const LoaderData& data, int64_t batch, int workers, WorkersAs as,
                      double budget_s) {
  const DatasetPtr nothing = null_dataset(data.samples().spec(), int64_t{1} << 20);
  Loader loader(*nothing, {.global_batch = batch, .workers = workers, .shuffle = false, .as = as});
  int64_t epoch = 0;
  loader.start_epoch(epoch);
  Probed probed;
  // Times a hundred batches at once, because one takes little more than reading the clock.
  constexpr int kTogether = 100;
  probed.samples = time_alone(budget_s, 6, [&] {
    for (int i = 0; i < kTogether; ++i)
      if (!loader.next()) loader.start_epoch(++epoch);
  });
  for (double& seconds : probed.samples.seconds) seconds /= kTogether;
  const double sample_s = mean(probed.samples.seconds) / static_cast<double>(batch);
  probed.counters = {{metric::kSamplesPerS, 1 / sample_s}, {metric::kSampleS, sample_s}};
  return probed;
}

Probed probe_collate(const LoaderData& data, int64_t batch, double budget_s) {
  const int64_t bytes = data.sample_bytes();
  const std::vector<char> sample(static_cast<size_t>(bytes), 1);
  Probed probed;
  probed.samples = time_alone(budget_s, 6, [&] {
    Tensor made = Tensor::empty({batch * bytes / 4}, Dtype::f32);
    auto* to = static_cast<char*>(made.mutable_raw());
    for (int64_t i = 0; i < batch; ++i)
      std::memcpy(to + i * bytes, sample.data(), static_cast<size_t>(bytes));
  });
  const double seconds = mean(probed.samples.seconds);
  probed.counters = {{metric::kSampleS, seconds / static_cast<double>(batch)},
                     {metric::kBytesPerS, static_cast<double>(batch * bytes) / seconds}};
  return probed;
}

Probed probe_read(const LoaderData& data, int threads, bool cold, double budget_s) {
  HM_ENSURE(!data.files().empty(), "[loader_bench] {} has no files to read", data.name());
  cold ? evict(data.files()) : read_in(data.files());
  const double resident = resident_fraction(data.files()).value_or(-1);
  HM_ENSURE(!cold || (resident >= 0 && resident <= 0.02), "[loader_bench] not cold: {}",
            resident < 0 ? std::string("the system does not report "
                                       "which pages are in memory")
                         : fmt::format("{:.0f} % of the pages stayed", 100 * resident));
  Reading reading(data.files(), cold, budget_s);
  reading.run(threads);
  HM_ENSURE(reading.files() > 0, "[loader_bench] no file could be read");
  const auto files = static_cast<double>(reading.files());
  Probed probed;
  probed.samples.seconds = {reading.seconds() / files};
  probed.counters = {{metric::kFilesPerS, files / reading.seconds()},
                     {metric::kBytesPerS, static_cast<double>(reading.bytes()) / reading.seconds()},
                     {"resident_before", resident}};
  return probed;
}

Probed probe_cores(int threads, double budget_s) {
  Probed probed;
  std::vector<double> ratios;
  constexpr int kRounds = 5;
  for (int round = 0; round < kRounds; ++round) {
    const double each = std::max(budget_s / (2 * kRounds), 0.04);
    const auto alone = static_cast<double>(spin_together(1, each));
    ratios.push_back(static_cast<double>(spin_together(threads, each)) / alone);
    probed.samples.seconds.push_back(each);
  }
  probed.counters = {{"cores", quantile(ratios, 0.5)}};
  return probed;
}

}  // namespace howmany::benches
