// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/measure.h"

#include <algorithm>
#include <cmath>

#include "reports/workers/advise.h"

namespace howmany::reports {
namespace {

constexpr int kMaxRuns = 8;
constexpr int kDecidingTurns = 5;  // with fewer, more turns may change the answer
constexpr int kMaxBetween = 3, kMaxSwept = 64;
// A sweep ends at this number for each core. The user's Python may need more than our threads.
constexpr double kPerCore = 2, kPerCoreOfPython = 4;

std::vector<int> numbers_to_sweep(const WorkersFacts& facts) {
  const double per_core = facts.script.empty() ? kPerCore : kPerCoreOfPython;
  const double useful = std::ceil(per_core * facts.cores / facts.asked.devices);
  const int most = static_cast<int>(
      std::min<double>({std::max(2.0, useful), kMaxSwept, double(most_workers(facts.bounds))}));
  std::vector<int> numbers = {0};
  for (int n = 1; n < most; n *= 2) numbers.push_back(n);
  if (most > 0) numbers.push_back(most);
  return numbers;
}

std::vector<int> numbers_around(const WorkersPoints& points, int chosen) {
  int below = -1, above = chosen;
  for (const WorkersPoint& point : points) {
    if (point.workers < chosen) below = point.workers;
    if (point.workers > chosen && above == chosen) above = point.workers;
  }
  const int count = below < 0 ? 0 : std::min(chosen - below - 1, kMaxBetween);
  if (count == 0) return {below < 0 ? chosen : below, chosen, above};
  std::vector<int> numbers = {chosen};
  for (int i = 1; i <= count; ++i) numbers.push_back(below + (chosen - below) * i / (count + 1));
  return numbers;
}

std::vector<int> numbers_after(const WorkersFacts& facts, const WorkersPoint& chosen) {
  const int most = most_workers(facts.bounds), twice = std::max(1, 2 * chosen.workers);
  // If training does not wait, more workers cannot help.
  const bool is_fed = facts.shows_stall() && stall_of(chosen).value <= facts.max_stall;
  std::vector<int> numbers = {chosen.workers, std::min(most, twice), std::min(most, 2 * twice)};
  if (&chosen != &facts.points.back() || is_fed || numbers[1] <= chosen.workers)
    numbers = numbers_around(facts.points, chosen.workers);
  numbers.push_back(best_of(facts.points)->workers);
  for (const auto& [workers, turns] : turns_missing(facts)) numbers.push_back(workers);
  return numbers;
}

bool has_new(const WorkersFacts& facts, const std::vector<int>& numbers) {
  return std::ranges::any_of(numbers, [&](int w) { return !find_point(facts.points, w); });
}

// Returns those of `numbers` that lack turns for a certain answer, and sets the turns to add.
std::vector<int> lacking(const WorkersFacts& facts, const std::vector<int>& numbers,
                         size_t& turns) {
  std::vector<int> few;
  int rounds = 0;
  for (const auto& [workers, missing] : turns_missing(facts)) {
    if (std::ranges::count(numbers, workers) == 0) continue;
    few.push_back(workers);
    rounds = std::max(rounds, missing);
  }
  turns = few.size() * static_cast<size_t>(rounds);
  return few;
}

// True if more turns would not change the answer.
bool is_decided(const WorkersFacts& facts, const std::vector<int>& numbers) {
  if (has_new(facts, numbers)) return false;
  const bool enough = std::ranges::all_of(numbers, [&](int workers) {
    return find_point(facts.points, workers)->turns() >= kDecidingTurns;
  });
  return enough && (!facts.wanted.empty() || advise_workers(facts).certain);
}

}  // namespace

std::vector<int> next_numbers(const WorkersFacts& facts) {
  std::vector<int> numbers = facts.wanted;
  if (numbers.empty() && facts.points.empty()) return numbers_to_sweep(facts);
  if (numbers.empty()) {
    const WorkersPoint* chosen = chosen_of(facts);
    if (chosen == nullptr) return {};
    numbers = numbers_after(facts, *chosen);
  }
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::erase_if(numbers, [&](int workers) {
    const WorkersPoint* point = find_point(facts.points, workers);
    return (point != nullptr && !point->error.empty()) ||
           std::ranges::count(facts.left_out, workers) > 0;
  });
  return numbers;
}

void measure_workers(WorkersBench& bench, WorkersFacts& facts, const Budget& budget) {
  for (int run = 0; run < kMaxRuns; ++run) {
    std::vector<int> numbers = next_numbers(facts);
    if (numbers.empty() || (run > 0 && is_decided(facts, numbers))) break;
    const double round = bench.seconds_of(numbers.size());
    double seconds = std::max(0.0, budget.left() - bench.first_epoch_seconds());
    const bool explores = facts.wanted.empty() && has_new(facts, numbers);
    if (explores && seconds / 2 >= kMinTurns * round) seconds /= 2;
    if (run > 0 && seconds < round) {
      facts.undecided = has_new(facts, numbers);
      size_t turns = 0;
      const std::vector<int> few = lacking(facts, numbers, turns);
      if (few.empty() || bench.seconds_of(turns) > seconds) {
        facts.enough_seconds = budget.elapsed() + bench.seconds_of(kMinTurns * numbers.size());
        break;
      }
      numbers = few;
    }
    if (!bench.measure(facts, numbers, seconds)) return;
  }
  if (const WorkersPoint* chosen = chosen_of(facts))
    bench.measure_first_epoch(facts, chosen->workers);
}

}  // namespace howmany::reports
