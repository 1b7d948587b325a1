// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "core/base/text/format.h"
#include "reports/workers/compare.h"

namespace howmany::reports {
namespace {

constexpr int kMostBetween = 3;
constexpr double kFewestBatches = 8;  // that a turn counts
// Shares of the best predicted rate. The model smooths corners: as many workers as cores reach
// 0.87.
constexpr double kPredictedKnee = 0.85, kPredictedNear = 0.95;

bool has_demand(const WorkersFacts& facts) { return facts.asked.demand > 0; }

// Returns the fewest workers that are predicted to meet the demand: 0 if the caller alone suffices.
// Without such a number or a demand, returns the first near the best rate.
int predicted_choice(const WorkersFacts& facts, int most) {
  const bool demanded = has_demand(facts);
  for (int w = 0; demanded && w <= most; ++w)
    if (predicted_stall(facts.probes, facts.asked, w) <= facts.most_stall) return w;
  double best = 0;
  for (int w = 0; w <= most; ++w)
    best = std::max(best, predicted_rate(facts.probes, facts.asked, w));
  const double near = (demanded ? kPredictedNear : kPredictedKnee) * best;
  for (int w = 0; w <= most; ++w)
    if (predicted_rate(facts.probes, facts.asked, w) >= near) return w;
  return most;
}

// Returns twice the useful number by the model.
int most_to_sweep(const WorkersFacts& facts) {
  // Slow storage needs more workers than cores.
  const double each = std::max(1.0, facts.probes.sample_s / core_s(facts.probes));
  const double useful = std::ceil(2 * facts.probes.cores * each / facts.asked.devices);
  return static_cast<int>(std::min<double>(most_workers(facts.bounds), std::max(2.0, useful)));
}

const WorkersPoint* find(const WorkersFacts& facts, int workers) {
  const auto found = std::ranges::find(facts.points, workers, &WorkersPoint::workers);
  return found == facts.points.end() ? nullptr : &*found;
}

bool failed(const WorkersFacts& facts, int workers) {
  const WorkersPoint* point = find(facts, workers);
  return point != nullptr && !point->error.empty();
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
  const int count = below < 0 ? 0 : std::min(chosen.workers - below - 1, kMostBetween);
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

const WorkersPoint* chosen_of(const WorkersFacts& facts) {
  const WorkersPoint* feeds =
      has_demand(facts) ? fewest_that_feed(facts.points, facts.most_stall) : nullptr;
  if (feeds != nullptr) return feeds;
  const WorkersPoint* best = best_of(facts.points);
  return best == nullptr ? nullptr : &fewest_near(facts.points, *best);
}

std::vector<int> next_numbers(const WorkersFacts& facts) {
  std::vector<int> numbers = facts.wanted;
  if (numbers.empty() && facts.points.empty()) return numbers_to_sweep(most_to_sweep(facts));
  if (numbers.empty()) {
    const WorkersPoint* chosen = chosen_of(facts);
    if (chosen == nullptr) return {};
    numbers = numbers_to_refine(facts.points, *chosen);
    numbers.push_back(best_of(facts.points)->workers);
    if (const int most = most_workers(facts.bounds); chosen == &facts.points.back())
      numbers.push_back(std::min(most, 2 * std::max(1, chosen->workers)));
  }
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::erase_if(numbers, [&](int workers) { return failed(facts, workers); });
  return numbers;
}

bool has_new(const WorkersFacts& facts, const std::vector<int>& numbers) {
  return std::ranges::any_of(numbers, [&](int w) { return find(facts, w) == nullptr; });
}

double turn_seconds(const WorkersFacts& facts, int workers) {
  const double rate = predicted_rate(facts.probes, facts.asked, workers);
  const double taken = has_demand(facts) ? std::min(rate, facts.asked.demand) : rate;
  const double ahead = std::max(1, workers) * facts.asked.prefetch;
  const double batch_s = static_cast<double>(facts.asked.batch) / taken;
  return std::max(kMinTurn, kFewestBatches * batch_s) + ahead * batch_s;
}

std::vector<int> in_time(const WorkersFacts& facts, std::vector<int> numbers, double left) {
  const int predicted = predicted_choice(facts, most_to_sweep(facts));
  const auto far = [&](int workers) { return std::abs(workers - predicted); };
  const auto seconds = [&] {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0, [&](double sum, int workers) {
      return sum + turn_seconds(facts, workers);
    });
  };
  while (numbers.size() > 1 && seconds() > left)
    numbers.erase(std::ranges::max_element(numbers, {}, far));
  return numbers;
}

std::string why_unmeasurable(const WorkersFacts& facts, double left) {
  const LoaderDemand& asked = facts.asked;
  for (const WorkerBound& bound : facts.bounds)
    if (bound.too_many)
      return fmt::format(
          "the batches of {} devices do not fit into memory, even without workers ({})",
          asked.devices, bound.because);
  const double batches = asked.devices * static_cast<double>(asked.batch);
  const double seconds = batches * core_s(facts.probes) / std::max(1.0, facts.probes.cores);
  if (asked.devices == 1 || seconds <= left) return "";
  return fmt::format(
      "one batch for each of {} devices takes {} on {:.2g} cores, and {} are left of "
      "--time-budget",
      asked.devices, format_seconds(seconds), facts.probes.cores,
      format_seconds(std::max(0.0, left)));
}

}  // namespace howmany::reports
