// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/loader_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "reports/results/disturbance.h"
#include "reports/workers/rows.h"

namespace howmany::reports {
namespace {

constexpr double kMinTurn = 0.3, kMaxTurn = 3;  // seconds that count
constexpr int kMaxRounds = 10;                  // of a run
constexpr double kTimesForRepeat = 4;           // required time left, in runs, to repeat a run
constexpr double kColdSeconds = 1;

std::vector<std::string> options(const WorkersFacts& facts, const std::vector<int>& workers) {
  std::vector<std::string> all = {flag::kWorkers,    fmt::format("{}", fmt::join(workers, ",")),
                                  flag::kRanks,      std::to_string(facts.asked.devices),
                                  flag::kWorkerType, facts.as};
  if (facts.has_demand())
    all.insert(all.end(), {flag::kSamplesPerSecond, fmt::format("{:.6g}", facts.asked.demand)});
  return all;
}

// Ascends in the first round, descends in the next, and so on.
std::vector<int> order_of(const std::vector<int>& numbers, int rounds) {
  std::vector<int> order;
  for (int round = 0; round < rounds; ++round)
    round % 2 == 0 ? order.insert(order.end(), numbers.begin(), numbers.end())
                   : order.insert(order.end(), numbers.rbegin(), numbers.rend());
  return order;
}

}  // namespace

bool LoaderBench::measure(WorkersFacts& facts, const std::vector<int>& numbers, double seconds) {
  const auto count = static_cast<double>(numbers.size());
  const double turn = std::clamp(seconds / (kMaxRounds * count) - untimed_, kMinTurn, kMaxTurn);
  const double round = count * (turn + untimed_);
  const int rounds = static_cast<int>(std::clamp<double>(seconds / round, 1, kMaxRounds));
  if (!give_turns(facts, numbers, rounds, turn)) return false;
  tell_rates(facts, numbers);
  return true;
}

// Measures each number alone if one of them ended the program.
bool LoaderBench::give_turns(WorkersFacts& facts, const std::vector<int>& numbers, int rounds,
                             double turn) {
  const std::vector<int> order = order_of(numbers, rounds);
  bool interrupted = false;
  const auto measure = [&] {
    LoaderRun one =
        runs_.run_loader(runs_.arguments().data, options(facts, order), turn, order.size());
    interrupted |= one.interrupted();
    return one;
  };
  const LoaderRun run = measure_undisturbed(measure, [&](const LoaderRun& first) {
    return kTimesForRepeat * first.ended.seconds < budget_.left();
  });
  if (interrupted) return false;
  measured_ = true;
  if (run.problem.empty() && !run.file.rows.empty()) {
    untimed_ = std::max(0.0, run.ended.seconds / static_cast<double>(order.size()) - turn);
    runs_.keep(run);
    add_turns(facts, run.file.rows);
    return true;
  }
  if (numbers.size() == 1) {
    point_at(facts.points, numbers[0]).error =
        run.problem.empty() ? "loader_bench " + run.ended.describe() : run.problem;
    return true;
  }
  return std::ranges::all_of(
      numbers, [&](int workers) { return give_turns(facts, {workers}, rounds, turn); });
}

void LoaderBench::tell_rates(const WorkersFacts& facts, const std::vector<int>& numbers) const {
  std::vector<std::string> rates;
  for (const int workers : numbers) {
    const WorkersPoint* point = find_point(facts.points, workers);
    if (point != nullptr)
      rates.push_back(fmt::format(
          "{} workers {}", workers,
          point->error.empty() ? format_count(rate_of(*point).value) : "failed: " + point->error));
  }
  runs_.tell(fmt::format("samples/s: {} ({} left)", fmt::join(rates, ", "),
                         format_seconds(std::round(budget_.left()))));
}

double LoaderBench::round_seconds(size_t numbers) const {
  return measured_ ? static_cast<double>(numbers) * (kMinTurn + untimed_) : 0;
}

double LoaderBench::first_epoch_seconds() const { return has_files_ ? kColdSeconds + untimed_ : 0; }

void LoaderBench::measure_first_epoch(WorkersFacts& facts, int workers) {
  if (!has_files_ || budget_.left() < kColdSeconds) return;
  std::vector<std::string> cold = {flag::kWorkers,    std::to_string(workers),
                                   flag::kRanks,      std::to_string(facts.asked.devices),
                                   flag::kWorkerType, facts.as,
                                   flag::kCache,      "cold"};
  const double seconds = std::clamp(budget_.left() - untimed_, kColdSeconds, 5 * kColdSeconds);
  const LoaderRun run = runs_.run_loader(runs_.arguments().data, cold, seconds, 1);
  if (!run.problem.empty() || run.file.rows.size() != 1) return;
  runs_.keep(run);
  if (!run.file.rows[0].error.empty()) return;
  facts.cold_rate = counter(run.file.rows[0], metric::kSamplesPerS);
  facts.cold_workers = workers;
}

}  // namespace howmany::reports
