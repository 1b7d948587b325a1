// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/search.h"

#include <algorithm>
#include <cmath>

#include "reports/workers/compare.h"

namespace howmany::reports {
namespace {

constexpr int kMaxBetween = 3, kMaxSwept = 64;
// A sweep ends at this number for each core. The user's Python may need more than our threads.
constexpr double kPerCore = 2, kPerCoreOfPython = 4;

int most_to_sweep(const WorkersFacts& facts) {
  const bool python = !facts.script.empty();
  const double useful =
      std::ceil((python ? kPerCoreOfPython : kPerCore) * facts.cores / facts.asked.devices);
  return static_cast<int>(
      std::min<double>({std::max(2.0, useful), kMaxSwept, double(most_workers(facts.bounds))}));
}

bool failed(const WorkersFacts& facts, int workers) {
  const WorkersPoint* point = find_point(facts.points, workers);
  return point != nullptr && !point->error.empty();
}

// True if training does not wait, so that more workers cannot help.
bool is_fed(const WorkersFacts& facts, const WorkersPoint& point) {
  return facts.shows_stall() && stall_of(point).value <= facts.max_stall;
}

std::vector<int> numbers_after(const WorkersFacts& facts, const WorkersPoint& chosen) {
  const int most = most_workers(facts.bounds), twice = std::max(1, 2 * chosen.workers);
  std::vector<int> numbers = {best_of(facts.points)->workers};
  for (const auto& [workers, turns] : turns_missing(facts)) numbers.push_back(workers);
  const bool climbs = &chosen == &facts.points.back() && !is_fed(facts, chosen);
  std::vector<int> more = {chosen.workers, std::min(most, twice), std::min(most, 2 * twice)};
  if (!climbs || more[1] <= chosen.workers) more = numbers_to_refine(facts.points, chosen);
  numbers.insert(numbers.end(), more.begin(), more.end());
  return numbers;
}

}  // namespace

std::vector<int> numbers_to_sweep(int most) {
  std::vector<int> numbers = {0};
  for (int n = 1; n < most; n *= 2) numbers.push_back(n);
  if (most > 0) numbers.push_back(most);
  return numbers;
}

std::vector<int> numbers_to_refine(const WorkersPoints& points, const WorkersPoint& chosen) {
  int below = -1;
  for (const WorkersPoint& point : points)
    if (point.workers < chosen.workers) below = point.workers;
  std::vector<int> numbers = {chosen.workers};
  const int count = below < 0 ? 0 : std::min(chosen.workers - below - 1, kMaxBetween);
  for (int i = 1; i <= count; ++i)
    numbers.push_back(below + (chosen.workers - below) * i / (count + 1));
  if (count > 0) return numbers;
  if (below >= 0) numbers.push_back(below);
  for (const WorkersPoint& point : points)
    if (point.workers > chosen.workers) {
      numbers.push_back(point.workers);
      break;
    }
  return numbers;
}

std::vector<int> next_numbers(const WorkersFacts& facts) {
  std::vector<int> numbers = facts.wanted;
  if (numbers.empty() && facts.points.empty()) return numbers_to_sweep(most_to_sweep(facts));
  if (numbers.empty()) {
    const WorkersPoint* chosen = chosen_of(facts);
    if (chosen == nullptr) return {};
    numbers = numbers_after(facts, *chosen);
  }
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::erase_if(numbers, [&](int workers) {
    return failed(facts, workers) || std::ranges::count(facts.left_out, workers) > 0;
  });
  return numbers;
}

bool has_new(const WorkersFacts& facts, const std::vector<int>& numbers) {
  return std::ranges::any_of(numbers,
                             [&](int w) { return find_point(facts.points, w) == nullptr; });
}

}  // namespace howmany::reports
