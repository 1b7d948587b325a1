// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/loader_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/process.h"
#include "core/base/schema/flags.h"
#include "core/base/schema/metrics.h"
#include "core/base/text/format.h"
#include "reports/results/disturbance.h"

namespace howmany::reports {
namespace {

constexpr double kMinTurn = 0.3, kMaxTurn = 3;  // seconds that count
constexpr int kMaxRounds = 10;                  // of a run
constexpr double kTimesForRepeat = 4;           // required time left, in runs, to repeat a run
constexpr double kMinCold = 2, kMaxCold = 20;   // seconds of a first epoch
constexpr double kColdFactor = 4;               // it ends after this many case budgets

class LoaderBench final : public WorkersBench {
 public:
  LoaderBench(BenchRuns& runs, const Budget& budget, bool has_files)
      : runs_(runs), budget_(budget), has_files_(has_files) {}

  // The rounds ascend and descend in turn.
  bool measure(WorkersFacts& facts, const std::vector<int>& numbers, double seconds) override {
    const auto count = static_cast<double>(numbers.size());
    const double turn = std::clamp(seconds / (kMaxRounds * count) - untimed_, kMinTurn, kMaxTurn);
    const double rounds = std::clamp<double>(seconds / (count * (turn + untimed_)), 1, kMaxRounds);
    std::vector<int> order;
    for (int round = 0; round < static_cast<int>(rounds); ++round) {
      order.insert(order.end(), numbers.begin(), numbers.end());
      if (round % 2 == 1) std::reverse(order.end() - std::ssize(numbers), order.end());
    }
    if (!give_turns(facts, order, turn, std::max(seconds, kMinTurn))) return false;
    tell_rates(facts, numbers);
    return true;
  }

  double seconds_of(size_t turns) const override {
    return runs_.kept().empty() ? 0 : static_cast<double>(turns) * (kMinTurn + untimed_);
  }

  double first_epoch_seconds() const override { return has_files_ ? kMinCold + untimed_ : 0; }

  void measure_first_epoch(WorkersFacts& facts, int workers) override {
    if (!has_files_ || budget_.left() < kMinCold) return;
    const double seconds = std::clamp(budget_.left() - untimed_, kMinCold, kMaxCold);
    std::vector<std::string> cold = options(facts, {workers});
    cold.insert(cold.end(), {flag::kCache, "cold"});
    SuiteRun run = runs_.run_loader(runs_.arguments().data, cold, seconds / kColdFactor, 1);
    if (!run.problem.empty() || run.file.rows.size() != 1) return;
    if (run.file.rows[0].error.empty()) {
      facts.cold_rate = counter(run.file.rows[0], metric::kSamplesPerS);
      facts.cold_workers = workers;
    }
    runs_.keep(std::move(run));
  }

 private:
  static std::vector<std::string> options(const WorkersFacts& facts,
                                          const std::vector<int>& order) {
    return {flag::kWorkers,    fmt::format("{}", fmt::join(order, ",")),
            flag::kRanks,      std::to_string(facts.asked.devices),
            flag::kWorkerType, facts.as};
  }

  // Measures a number alone if the program ended before its first turn.
  bool give_turns(WorkersFacts& facts, const std::vector<int>& order, double turn, double seconds) {
    std::vector<std::string> words = options(facts, order);
    words.insert(words.end(), {flag::kTimeBudget, fmt::format("{:.3f}", seconds)});
    if (facts.has_demand())
      words.insert(words.end(),
                   {flag::kSamplesPerSecond, fmt::format("{:.6g}", facts.asked.demand)});
    const auto measure = [&] {
      return runs_.run_loader(runs_.arguments().data, words, turn, order.size());
    };
    SuiteRun run = measure_undisturbed(measure, [&](const SuiteRun& first) {
      return !interrupted() && kTimesForRepeat * first.ended.seconds < budget_.left();
    });
    const std::string why =
        run.problem.empty() ? "loader_bench " + run.ended.describe() : run.problem;
    std::set<int> missing(order.begin(), order.end());
    if (run.problem.empty() && !run.file.rows.empty()) {
      const auto turns = static_cast<double>(run.file.rows.size());
      untimed_ = std::max(0.0, run.ended.seconds / turns - turn);
      for (const int workers : add_turns(facts, run.file.rows)) missing.erase(workers);
      runs_.keep(std::move(run));
    }
    if (interrupted()) return false;
    if (missing.contains(order[0]) && std::ranges::count(order, order[0]) == std::ssize(order)) {
      point_at(facts.points, order[0]).error = why;
      return true;
    }
    return std::ranges::all_of(missing, [&](int workers) {
      const auto turns = static_cast<size_t>(std::ranges::count(order, workers));
      return give_turns(facts, std::vector<int>(turns, workers), turn, turn);
    });
  }

  void tell_rates(const WorkersFacts& facts, const std::vector<int>& numbers) const {
    std::vector<std::string> rates;
    for (const int workers : numbers)
      if (const WorkersPoint* point = find_point(facts.points, workers))
        rates.push_back(fmt::format("{} workers {}", workers,
                                    point->error.empty() ? format_count(rate_of(*point).value)
                                                         : "failed: " + point->error));
    runs_.tell(fmt::format("samples/s: {} ({} left)", fmt::join(rates, ", "),
                           format_seconds(std::round(budget_.left()))));
  }

  BenchRuns& runs_;
  const Budget& budget_;
  const bool has_files_;
  double untimed_ = 0;  // seconds of a turn in the last run
};

}  // namespace

std::unique_ptr<WorkersBench> make_loader_bench(BenchRuns& runs, const Budget& budget,
                                                bool has_files) {
  return std::make_unique<LoaderBench>(runs, budget, has_files);
}

}  // namespace howmany::reports
