// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
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
#include "reports/workers/advise.h"
#include "reports/workers/rows.h"
#include "reports/workers/run.h"
#include "reports/workers/search.h"

namespace howmany::reports {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMinTimedSeconds = 0.4, kMaxTimedSeconds = 5;  // timed batches of a run
constexpr double kMaxTurn = 3;
constexpr double kShareOfNew = 0.5;    // of the remaining time, if numbers are new
constexpr int kMostRounds = 10;        // of a run
constexpr size_t kFewestRounds = 5;    // for a certain answer
constexpr double kTimesForRepeat = 4;  // required remaining time, in runs, to repeat a run
constexpr double kColdSeconds = 1;     // reserved for files not in memory

// True if more turns would not change the answer.
bool is_decided(const WorkersFacts& facts) {
  const std::vector<int> numbers = next_numbers(facts);
  if (has_new(facts, numbers)) return false;
  const bool enough = std::ranges::all_of(facts.points, [&](const WorkersPoint& point) {
    return std::ranges::count(numbers, point.workers) == 0 || point.rates.size() >= kFewestRounds;
  });
  return enough && (!facts.wanted.empty() || advise_workers(facts).certain);
}

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
  double overhead = 0;  // untimed seconds of the last run
  double untimed_of_turn = 0;
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

  double cold_seconds(const WorkersFacts& facts) const {
    const bool will =
        results.context.contains(context::kLoaderFormat) && facts.probes.cold_error.empty();
    return will ? kColdSeconds + overhead : 0;
  }

  std::vector<std::string> options(const WorkersFacts& facts,
                                   const std::vector<int>& workers) const {
    std::vector<std::string> all = {flag::kWorkers,    fmt::format("{}", fmt::join(workers, ",")),
                                    flag::kRanks,      std::to_string(facts.asked.devices),
                                    flag::kWorkerType, facts.as};
    if (facts.asked.demand > 0)
      all.insert(all.end(), {flag::kSamplesPerSecond, fmt::format("{:.6g}", facts.asked.demand)});
    return all;
  }

  // Measures `numbers` in rounds, there and back. Returns false if no time is left for a round or
  // nothing was measured.
  bool take_turns(WorkersFacts& facts, std::vector<int> numbers) {
    const double room = left() - cold_seconds(facts);
    if (facts.points.empty()) {
      const size_t all = numbers.size();
      numbers = in_time(facts, std::move(numbers), room);
      results.out_of_time = numbers.size() < all;
    } else if (round_seconds(facts, numbers) > room) {
      return false;
    }
    const double part = (has_new(facts, numbers) && facts.wanted.empty() ? kShareOfNew : 1) * room;
    const double timed = part / (kMostRounds * static_cast<double>(numbers.size()));
    const double turn = std::clamp(timed, kMinTurn, kMaxTurn);
    const double round = round_seconds(facts, numbers, turn);
    const int rounds = std::clamp(static_cast<int>(part / round), 1, kMostRounds);
    return measure(facts, numbers, rounds, turn);
  }

  // The untimed seconds of a turn are those of the last run, if there was one.
  double round_seconds(const WorkersFacts& facts, const std::vector<int>& numbers,
                       double turn = kMinTurn) const {
    double seconds = 0;
    for (const int workers : numbers)
      seconds += std::max(turn + untimed_of_turn, turn_seconds(facts, workers));
    return seconds;
  }

  // Measures each number alone if one of them ended the program.
  bool measure(WorkersFacts& facts, const std::vector<int>& numbers, int rounds, double turn) {
    std::vector<int> order;
    for (int round = 0; round < rounds; ++round)
      round % 2 == 0 ? order.insert(order.end(), numbers.begin(), numbers.end())
                     : order.insert(order.end(), numbers.rbegin(), numbers.rend());
    std::string why;
    const std::vector<BenchRow> rows = run(options(facts, order), turn, why, order.size());
    if (results.interrupted) return false;
    untimed_of_turn = overhead / static_cast<double>(order.size());
    if (rows.empty() && numbers.size() == 1) {
      point_at(facts.points, numbers[0]).error = why;
      tell(fmt::format("{} workers: failed: {}", numbers[0], why));
      return true;
    }
    for (const int workers : rows.empty() ? numbers : std::vector<int>())
      if (!measure(facts, {workers}, 1, turn)) return false;
    add(facts, rows);
    return true;
  }

  void add(WorkersFacts& facts, const std::vector<BenchRow>& rows) {
    const int begin = next_round(facts.points);
    std::map<int, int> rounds;  // by workers
    for (const BenchRow& row : rows) {
      const int workers = std::stoi(measurement_of(row, {}).parameters.at(parameter::kWorkers));
      add(point_at(facts.points, workers), row, begin + rounds[workers]++);
    }
    std::string told;
    for (const auto& [workers, count] : rounds) {
      const WorkersPoint& point = point_at(facts.points, workers);
      told += fmt::format(
          "{}{} workers {}", told.empty() ? "" : ", ", workers,
          point.error.empty() ? format_count(rate_of(point).value) : "failed: " + point.error);
    }
    if (!rows.empty())
      tell(fmt::format("samples/s: {} ({} left)", told,
                       format_seconds(std::max(0.0, std::round(left())))));
  }

  static void add(WorkersPoint& point, const BenchRow& row, int round) {
    const double rate = counter(row, metric::kSamplesPerS);
    if (!row.error.empty()) point.error = row.error;
    if (!row.error.empty() || !(rate > 0)) return;
    point.rates[round] = rate;
    if (row.counters.contains(metric::kStallFraction))
      point.stalls.push_back(counter(row, metric::kStallFraction));
    point.wait_p95_s = counter(row, metric::kLatencyP95S);
    point.first_batch_s = counter(row, metric::kFirstBatchS);
    point.bytes_per_worker = counter(row, metric::kBytesPerWorker);
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
  bool more = facts.why_none.empty();
  while (more) {
    const std::vector<int> numbers = next_numbers(facts);
    more = !numbers.empty() && s.take_turns(facts, numbers) && !is_decided(facts);
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
      std::clamp(s.left() - s.overhead, kMinTimedSeconds, kMaxTimedSeconds), why);
  if (rows.size() != 1 || !rows[0].error.empty()) return;
  facts.cold_rate = counter(rows[0], metric::kSamplesPerS);
  facts.cold_workers = workers;
}

}  // namespace howmany::reports
