// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <utility>

#include "core/base/process.h"
#include "core/base/schema/context.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/statistics.h"
#include "core/base/text/files.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/results/disturbance.h"
#include "reports/results/machine.h"
#include "reports/workers/rows.h"
#include "reports/workers/run.h"
#include "reports/workers/search.h"

namespace howmany::reports {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kExpectedTrials = 5;
constexpr double kMinTimedSeconds = 0.4, kMaxTimedSeconds = 5;  // timed batches of a run
// Share of the budget of the first run without a demand. Interleaved runs follow.
constexpr double kShare = 0.04, kMostAlone = 1;
constexpr double kLeastTurns = 1;      // seconds per number
constexpr double kStart = 0.5;         // seconds to start a program
constexpr double kTimesForRepeat = 4;  // required remaining time, in runs, to repeat a run
constexpr double kColdSeconds = 1;     // reserved for files not in memory
constexpr double kOnGpuSeconds = 2;
constexpr const char* kTooMuch = "loader_bench reported more than was requested";

}  // namespace

void write_loader_files(const std::string& folder, const LoaderResults& results) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const BenchRow& row : results.rows) rows.push_back(nlohmann::ordered_json(row.json));
  std::string lines;
  for (const SampleLine& line : results.samples) lines += dump_json_line(line.json);
  write_text(folder + "/loader.samples.jsonl", lines);
  write_text(folder + "/loader.json",
             dump_json({{"context", results.context}, {"benchmarks", rows}}));
}

struct LoaderMeasuring::State {
  WorkersArguments arguments;
  std::string folder;
  LoaderResults results;
  Clock::time_point start = Clock::now();
  double overhead = 0;        // untimed seconds of the last run
  double busy_elsewhere = 0;  // largest share of the cores in a kept run

  double left() const {
    return arguments.time_budget - std::chrono::duration<double>(Clock::now() - start).count();
  }

  void tell(const std::string& text) const {
    if (!arguments.quiet) fmt::print(stderr, "{}\n", text);
  }

  // Runs the bench for `seconds` per case and keeps its rows, including failed ones. Repeats the
  // run if other programs disturbed it. Returns no rows if the bench died or was interrupted.
  std::vector<BenchRow> run(const std::vector<std::string>& more, double seconds, std::string& why,
                            size_t cases = 1) {
    const double timed = seconds * static_cast<double>(cases);
    const auto measure = [&] {
      LoaderRun one = run_loader_bench(arguments, folder, more, seconds, cases);
      results.interrupted |= one.ended.how == ProcessResult::How::kInterrupted;
      return one;
    };
    LoaderRun kept = measure_undisturbed(measure, [&](const LoaderRun& first) {
      return kTimesForRepeat * first.ended.seconds < left();
    });
    busy_elsewhere = std::fmax(busy_elsewhere, kept.busy_elsewhere);
    overhead = std::max(0.0, kept.ended.seconds - timed);
    if (!kept.problem.empty()) {
      why = kept.problem;
      return {};
    }
    if (results.context.empty()) results.context = kept.file.context;
    std::ranges::move(kept.samples, std::back_inserter(results.samples));
    std::ranges::copy(kept.file.rows, std::back_inserter(results.rows));
    write_loader_files(folder, results);
    if (kept.file.rows.empty() && why.empty()) why = "loader_bench " + kept.ended.describe();
    return kept.file.rows;
  }

  // With a demand, each number is measured twice, unpaced and paced.
  double seconds_for_trial(const WorkersFacts& facts) const {
    const bool paced = facts.asked.demand > 0;
    const double trials =
        !facts.wanted.empty() ? static_cast<double>(facts.wanted.size()) : kExpectedTrials;
    const double still = std::max(1.0, trials - static_cast<double>(facts.points.size()));
    const double room = left() / ((paced ? 2 : 1) * still + 1) - overhead;
    const double alone = std::clamp(kShare * arguments.time_budget, kMinTimedSeconds, kMostAlone);
    return std::clamp(room, kMinTimedSeconds, paced ? kMaxTimedSeconds : alone);
  }

  double cold_seconds(const WorkersFacts& facts) const {
    const bool will =
        results.context.contains(context::kLoaderFormat) && facts.probes.cold_error.empty();
    return will ? kColdSeconds + overhead : 0;
  }

  double later_seconds(const WorkersFacts& facts) const {
    return cold_seconds(facts) + on_gpu_seconds(facts);
  }

  double on_gpu_seconds(const WorkersFacts& facts) const {
    const bool will = !facts.gpu.empty() && facts.no_nvjpeg.empty() && facts.probes.decode_s > 0;
    return will ? kOnGpuSeconds + overhead : 0;
  }

  bool has_time(const WorkersFacts& facts) const {
    return facts.points.empty() || left() >= overhead + kMinTimedSeconds;
  }

  std::vector<std::string> options(const WorkersFacts& facts,
                                   const std::vector<int>& workers) const {
    return {flag::kWorkers,    fmt::format("{}", fmt::join(workers, ",")),
            flag::kRanks,      std::to_string(facts.asked.devices),
            flag::kWorkerType, facts.as};
  }

  WorkersPoint point_of(const BenchRow& row, int workers) const {
    WorkersPoint point;
    point.workers = workers;
    point.error = row.error;
    if (!point.error.empty()) return point;
    point.wait_p95_s = counter(row, metric::kLatencyP95S);
    point.wait_p99_s = counter(row, metric::kLatencyP99S);
    point.first_batch_s = counter(row, metric::kFirstBatchS);
    point.bytes_per_worker = counter(row, metric::kBytesPerWorker);
    point.rate = measurement_of(row, results.samples).metrics[metric::kSamplesPerS];
    return point;
  }

  WorkersPoint measure(const WorkersFacts& facts, int workers) {
    const double seconds = seconds_for_trial(facts);
    std::vector<std::string> more = options(facts, {workers});
    std::string why;
    const std::vector<BenchRow> free = run(more, seconds, why);
    WorkersPoint point;
    point.workers = workers;
    point.error = why;
    if (take(free, point)) point = point_of(free[0], workers);
    if (!(facts.asked.demand > 0) || !point.error.empty() || results.interrupted) return point;
    more.insert(more.end(), {flag::kSamplesPerSecond, fmt::format("{:.6g}", facts.asked.demand)});
    const std::vector<BenchRow> paced = run(more, seconds, point.error);
    if (!take(paced, point)) return point;
    point.stall = with_half_width(paced[0], metric::kStallFraction, "ratio");
    point.wait_p95_s = counter(paced[0], metric::kLatencyP95S);
    point.wait_p99_s = counter(paced[0], metric::kLatencyP99S);
    return point;
  }

  // Returns true if the point was measured.
  bool measure_alone(WorkersFacts& facts, int workers) {
    results.out_of_time = !has_time(facts);
    if (results.out_of_time) return false;
    WorkersPoint point = measure(facts, workers);
    if (results.interrupted) return false;
    facts.start_s = overhead;
    const std::string stall =
        point.stall ? fmt::format(", {:.1f} % stall", 100 * point.stall->value) : "";
    tell(point.error.empty() ? fmt::format("{} workers: {} samples/s{} ({} left)", workers,
                                           format_count(point.rate.value), stall, time_left())
                             : fmt::format("{} workers: failed: {}", workers, point.error));
    facts.points.push_back(std::move(point));
    return true;
  }

  std::string time_left() const { return format_seconds(std::max(0.0, std::round(left()))); }

  bool measure_in_turn(WorkersFacts& facts, const std::vector<int>& numbers) {
    const double each = seconds_in_turn(facts, numbers, left() - later_seconds(facts) - kStart);
    if (each < kLeastTurns && !facts.points.empty()) return false;
    std::vector<std::string> more = options(facts, numbers);
    more.push_back(flag::kInterleave);
    std::string why;
    const std::vector<BenchRow> rows = run(more, std::max(each, kLeastTurns), why, numbers.size());
    if (!rows.empty() || results.interrupted) return !results.interrupted && add(facts, rows);
    tell("in turn: failed: " + why);
    return measure_each_alone(facts, numbers);
  }

  // Measures the unknown numbers one by one, after one of them crashed the program.
  bool measure_each_alone(WorkersFacts& facts, const std::vector<int>& numbers) {
    bool any = false;
    for (const int workers : numbers)
      if (point_at(facts, workers) == nullptr) any = measure_alone(facts, workers) || any;
    return any;
  }

  // Returns true if anything was added.
  bool add(WorkersFacts& facts, const std::vector<BenchRow>& rows) {
    std::vector<WorkersFacts::Round> rounds, busy;
    std::vector<int> numbers;
    for (const BenchRow& row : rows) {
      numbers.push_back(std::stoi(measurement_of(row, {}).parameters.at(parameter::kWorkers)));
      add(facts, row, numbers.back(), rounds, busy);
    }
    std::erase_if(busy, [](const auto& round) { return round.empty(); });
    add_rounds(facts, rounds, busy);
    std::string told;
    for (const WorkersPoint& p : facts.points)
      if (std::ranges::count(numbers, p.workers) > 0)
        told += fmt::format("{}{} workers {}", told.empty() ? "" : ", ", p.workers,
                            p.error.empty() ? format_count(p.rate.value) : "failed: " + p.error);
    if (!rows.empty()) tell(fmt::format("in turn: {} samples/s ({} left)", told, time_left()));
    return !rounds.empty();
  }

  void add(WorkersFacts& facts, const BenchRow& row, int workers,
           std::vector<WorkersFacts::Round>& rounds, std::vector<WorkersFacts::Round>& busy) const {
    WorkersPoint* known = point_at(facts, workers);
    if (known == nullptr)
      facts.points.push_back(point_of(row, workers));
    else if (known->error.empty())
      known->error = row.error;
    const SampleLine* line = line_of(results.samples, row.name);
    if (!row.error.empty() || line == nullptr) return;
    const double samples = static_cast<double>(facts.asked.batch) * facts.asked.devices;
    rounds.resize(std::max(rounds.size(), line->seconds.size()));
    busy.resize(rounds.size());
    for (size_t r = 0; r < line->seconds.size(); ++r)
      rounds[r][workers] = samples / line->seconds[r];
    for (size_t r = 0; r < line->busy_cores.size(); ++r)
      if (line->busy_cores[r] > 0) busy[r][workers] = line->busy_cores[r];
  }

  static bool take(const std::vector<BenchRow>& rows, WorkersPoint& point) {
    if (rows.size() == 1 && rows[0].error.empty()) return true;
    if (rows.size() == 1) point.error = rows[0].error;
    if (rows.size() > 1) point.error = kTooMuch;
    return false;
  }
};

LoaderMeasuring::LoaderMeasuring(const WorkersArguments& arguments, std::string folder)
    : state_(std::make_unique<State>()) {
  state_->arguments = arguments;
  state_->folder = std::move(folder);
}
LoaderMeasuring::~LoaderMeasuring() = default;

const LoaderResults& LoaderMeasuring::results() const { return state_->results; }
double LoaderMeasuring::busy_elsewhere() const { return state_->busy_elsewhere; }

LoaderLimits LoaderMeasuring::limits() {
  const ProcessResult ended =
      run_command({.argv = {find_program("loader_bench"), flag::kLimits}, .timeout_seconds = 30});
  if (!ended.ok()) throw InputError("loader_bench --limits " + ended.describe());
  return limits_from_json(parse_json(ended.out, "loader_bench --limits"), "loader_bench --limits");
}

void LoaderMeasuring::probe(WorkersFacts& facts) {
  State& s = *state_;
  s.tell("probing one worker, the loader, the cores and the files");
  std::string why;
  const double seconds = std::clamp(s.arguments.time_budget / 40, 0.1, 2.0);
  const std::vector<BenchRow> rows =
      s.run({flag::kProbe, flag::kWorkerType, s.arguments.as}, seconds, why);
  s.overhead = 1;
  if (s.results.interrupted) return;
  if (rows.empty()) throw std::runtime_error(why);
  refuse_too_large(rows);
  facts.probes = probes_from({.rows = rows}, s.results.samples);
  add_files(facts, s.results.context);
}

bool LoaderMeasuring::measure_points(WorkersFacts& facts) {
  State& s = *state_;
  facts.why_none = why_unmeasurable(facts, s.left());
  for (bool more = facts.why_none.empty(); more;) {
    const std::vector<int> next = next_trials(facts);
    if (next.empty()) break;
    more = next.size() == 1 ? s.measure_alone(facts, next[0]) : s.measure_in_turn(facts, next);
  }
  return !s.results.out_of_time;
}

void LoaderMeasuring::measure_cold(WorkersFacts& facts, int workers) {
  State& s = *state_;
  if (s.cold_seconds(facts) == 0 || s.left() < kColdSeconds) return;
  std::string why;
  const std::vector<BenchRow> rows = s.run(
      {flag::kWorkers, std::to_string(workers), flag::kRanks, std::to_string(facts.asked.devices),
       flag::kCache, "cold", flag::kWorkerType, facts.as},
      std::clamp(s.left() - s.overhead - s.on_gpu_seconds(facts), kMinTimedSeconds,
                 kMaxTimedSeconds),
      why);
  if (rows.size() != 1 || !rows[0].error.empty()) return;
  facts.cold_rate = counter(rows[0], metric::kSamplesPerS);
  facts.cold_workers = workers;
}

void LoaderMeasuring::measure_on_gpu(WorkersFacts& facts, int workers) {
  State& s = *state_;
  if (s.on_gpu_seconds(facts) == 0) return;
  if (s.left() < kOnGpuSeconds) {
    facts.no_nvjpeg = "no time was left of --time-budget";
    return;
  }
  std::string numbers = "1";
  if (workers > 1) numbers += fmt::format(",{}", workers);
  std::string why;
  const std::vector<BenchRow> rows =
      s.run({flag::kWorkers, numbers, flag::kRanks, std::to_string(facts.asked.devices),
             flag::kWorkerType, "threads", flag::kTo, facts.gpu, flag::kDecode, "nvjpeg"},
            kOnGpuSeconds / 2, why, 2);
  for (const BenchRow& row : rows) {
    if (!row.error.empty()) facts.no_nvjpeg = row.error;
    if (!row.error.empty() || counter(row, metric::kDecodedByGpu) <= 0) continue;
    const Measurement m = measurement_of(row, {});
    facts.on_gpu.push_back({std::stoi(m.parameters.at(parameter::kWorkers)),
                            counter(row, metric::kSamplesPerS),
                            counter(row, metric::kDecodedByGpu)});
  }
}

}  // namespace howmany::reports
