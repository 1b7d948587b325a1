// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/loader_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/process.h"
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
constexpr double kMinCold = 2, kMaxCold = 20;   // seconds of a first epoch
constexpr double kColdFactor = 4;               // it ends after this many case budgets

std::vector<std::string> options(const WorkersFacts& facts, const std::vector<int>& workers,
                                 double seconds) {
  std::vector<std::string> all = {flag::kWorkers,    fmt::format("{}", fmt::join(workers, ",")),
                                  flag::kRanks,      std::to_string(facts.asked.devices),
                                  flag::kWorkerType, facts.as,
                                  flag::kTimeBudget, fmt::format("{:.3f}", seconds)};
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
  if (!give_turns(facts, order_of(numbers, rounds), turn, std::max(seconds, kMinTurn)))
    return false;
  tell_rates(facts, numbers);
  return true;
}

// Measures a number alone if the program ended before its first turn.
bool LoaderBench::give_turns(WorkersFacts& facts, const std::vector<int>& order, double turn,
                             double seconds) {
  const auto measure = [&] {
    return runs_.run_loader(runs_.arguments().data, options(facts, order, seconds), turn,
                            order.size());
  };
  const LoaderRun run = measure_undisturbed(measure, [&](const LoaderRun& first) {
    return !interrupted() && kTimesForRepeat * first.ended.seconds < budget_.left();
  });
  measured_ = true;
  std::set<int> missing(order.begin(), order.end());
  if (run.problem.empty() && !run.file.rows.empty()) {
    untimed_ = std::max(0.0, run.ended.seconds / static_cast<double>(run.file.rows.size()) - turn);
    runs_.keep(run);
    for (const int workers : add_turns(facts, run.file.rows)) missing.erase(workers);
  }
  if (interrupted()) return false;
  const auto turns_of = [&](int workers) {
    return static_cast<size_t>(std::ranges::count(order, workers));
  };
  if (missing.size() == 1 && turns_of(*missing.begin()) == order.size()) {
    point_at(facts.points, order[0]).error =
        run.problem.empty() ? "loader_bench " + run.ended.describe() : run.problem;
    return true;
  }
  return std::ranges::all_of(missing, [&](int workers) {
    return give_turns(facts, std::vector<int>(turns_of(workers), workers), turn, turn);
  });
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

double LoaderBench::seconds_of(size_t turns) const {
  return measured_ ? static_cast<double>(turns) * (kMinTurn + untimed_) : 0;
}

double LoaderBench::first_epoch_seconds() const { return has_files_ ? kMinCold + untimed_ : 0; }

void LoaderBench::measure_first_epoch(WorkersFacts& facts, int workers) {
  if (!has_files_ || budget_.left() < kMinCold) return;
  std::vector<std::string> cold = {flag::kWorkers,    std::to_string(workers),
                                   flag::kRanks,      std::to_string(facts.asked.devices),
                                   flag::kWorkerType, facts.as,
                                   flag::kCache,      "cold"};
  const double seconds = std::clamp(budget_.left() - untimed_, kMinCold, kMaxCold);
  const LoaderRun run = runs_.run_loader(runs_.arguments().data, cold, seconds / kColdFactor, 1);
  if (!run.problem.empty() || run.file.rows.size() != 1) return;
  runs_.keep(run);
  if (!run.file.rows[0].error.empty()) return;
  facts.cold_rate = counter(run.file.rows[0], metric::kSamplesPerS);
  facts.cold_workers = workers;
}

}  // namespace howmany::reports
