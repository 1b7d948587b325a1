// SPDX-License-Identifier: Apache-2.0
// Chooses the numbers of workers to measure.
#include "reports/workers/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/text/format.h"
#include "reports/workers/compare.h"
#include "reports/workers/points.h"

namespace howmany::reports {
namespace {

constexpr size_t kMostPoints = 8, kMostTurns = 200;
constexpr double kShareOfNew = 0.2;  // of the remaining time
constexpr double kShareOfLadder = 0.45;
constexpr size_t kLadder = 4;
constexpr double kFewRoundsTake = 1.2;  // seconds per loader, without its start
constexpr double kNoGain = 0.015;       // of the rate, from more workers
constexpr double kNearBest = 0.98;      // of the best rate
constexpr double kContends = 0.8;       // of the best rate, for numbers measured alone
constexpr double kFewContend = 0.9;     // and for numbers with few rounds
// Shares of the best predicted rate. The model smooths corners: as many workers as cores reach
// 0.87.
constexpr double kPredictedKnee = 0.85, kPredictedNear = 0.95;

bool measured(const WorkersFacts& facts, int workers) {
  return point_at(facts, workers) != nullptr;
}

bool feeds(const WorkersFacts& facts, const WorkersPoint& p) {
  return p.error.empty() && p.stall && p.stall->value <= facts.most_stall;
}

double rate_of(const WorkersFacts& facts, const WorkersPoint& p) {
  return compared_rate(facts, p).value;
}

double best_rate(const WorkersFacts& facts) {
  double best = 0;
  for (const WorkersPoint& p : facts.points) best = std::max(best, rate_of(facts, p));
  return best;
}

double sure_rate(const WorkersFacts& facts, const WorkersPoint& p) {
  return compared_rate(facts, p).sure();
}

double best_sure_rate(const WorkersFacts& facts) {
  double best = 0;
  for (const WorkersPoint& p : facts.points) best = std::max(best, sure_rate(facts, p));
  return best;
}

// Returns the fewest workers that are predicted to meet the demand: 0 if the caller alone suffices.
// Without such a number or a demand, returns the first near the best rate.
int predicted_choice(const WorkersFacts& facts, int most) {
  const bool demanded = facts.asked.demand > 0;
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

// Returns the largest useful number by the model, with a margin for its error.
int search_limit(const WorkersFacts& facts) {
  const int most = most_workers(facts.bounds);
  // Slow storage needs more workers than cores.
  const double each = std::max(1.0, facts.probes.sample_s / core_s(facts.probes));
  const double useful = std::ceil(2 * facts.probes.cores * each / facts.asked.devices) + 4;
  return static_cast<int>(std::min<double>(most, useful));
}

// Loaders that wait for storage have many workers and start slowly. The numbers that show the bend
// of the curve therefore start together, once.
bool by_ladder(const WorkersFacts& facts) {
  return facts.probes.waiting_s > 0 && !(facts.asked.demand > 0) && facts.wanted.empty();
}

// True if the point may be sufficient, given its error.
bool contends(const WorkersFacts& facts, const WorkersPoint& p) {
  if (!(rate_of(facts, p) > 0)) return false;
  if (!facts.wanted.empty()) return true;
  if (p.runs.empty()) return rate_of(facts, p) >= kContends * best_rate(facts);
  // With few rounds, one loader may have had an unfavourable place in memory throughout.
  if (p.runs.size() < kFewTurns && rate_of(facts, p) >= kFewContend * best_rate(facts)) return true;
  const double luck = rate_of(facts, p) / sure_rate(facts, p);
  return rate_of(facts, p) * luck * luck >= kNearBest * best_rate(facts);
}

// Returns as many numbers as fit at once, and always the first.
std::vector<int> with_room(const WorkersFacts& facts, const std::vector<int>& numbers) {
  std::vector<int> chosen;
  int left = most_workers(facts.bounds);
  for (const int w : numbers) {
    if (!chosen.empty() && w > left) continue;
    left -= w;
    chosen.push_back(w);
  }
  return chosen;
}

// Returns the numbers that may be the best, fastest first in case of limited room. Empty if each
// has enough runs or only one is left.
std::vector<int> contenders(const WorkersFacts& facts, size_t enough) {
  std::vector<int> all;
  for (const WorkersPoint& p : facts.points)
    if (contends(facts, p)) all.push_back(p.workers);
  std::ranges::stable_sort(all, std::greater(),
                           [&](int w) { return rate_of(facts, *point_at(facts, w)); });
  std::vector<int> chosen = with_room(facts, all);
  const bool told =
      std::ranges::all_of(chosen, [&](int w) { return point_at(facts, w)->runs.size() >= enough; });
  std::ranges::sort(chosen);
  return told || chosen.size() < 2 ? std::vector<int>() : chosen;
}

int half_more(int workers) { return workers + std::max(1, workers / 2); }

// Returns the cores per device, at least 2, to show whether more than one worker pays.
int cores_of_each(const WorkersFacts& facts) {
  return static_cast<int>(std::max(2.0, std::round(facts.probes.cores / facts.asked.devices)));
}

// Returns a number between one that is too small and one that suffices: first the number that the
// rate of one worker predicts, then the neighbour, then the middle.
int between(int too_small, int suffices, double pointed_to) {
  const int there = static_cast<int>(std::ceil(std::min(pointed_to, 1e6)));
  if (there <= too_small) return (too_small + suffices) / 2;
  return std::min(there, suffices - 1);
}

std::optional<int> next_for_demand(const WorkersFacts& facts, int limit) {
  const double wanted = facts.asked.demand * facts.asked.devices;
  int fewest = limit + 1, too_small = -1;
  for (const WorkersPoint& p : facts.points)
    if (feeds(facts, p)) fewest = std::min(fewest, p.workers);
  for (const WorkersPoint& p : facts.points)
    if (!feeds(facts, p) && p.workers < fewest) too_small = std::max(too_small, p.workers);
  const WorkersPoint* last = point_at(facts, fewest <= limit ? fewest : too_small);
  const double pointed_to =
      wanted * std::max(1, last->workers) / std::max(rate_of(facts, *last), 1e-9);
  if (fewest <= limit) {
    if (fewest - too_small <= 1) return {};
    return between(too_small, fewest, pointed_to);
  }
  if (too_small >= limit) return {};
  for (const WorkersPoint& p : facts.points) {
    const bool fewer = p.workers < too_small && p.workers > 0;
    if (fewer && rate_of(facts, *last) < (1 + kNoGain) * rate_of(facts, p))
      return {};  // more workers gain nothing
  }
  const int farthest = std::min(limit, std::max(half_more(too_small), cores_of_each(facts)));
  return std::clamp(static_cast<int>(std::ceil(std::min(pointed_to, 1e6))), too_small + 1,
                    farthest);
}

// Returns a larger number while the largest gains. One worker alone gains nothing over the caller.
std::optional<int> more_for_rate(const WorkersFacts& facts, int limit) {
  const WorkersPoint& largest = *std::ranges::max_element(facts.points, {}, &WorkersPoint::workers);
  double fewer = 0;
  for (const WorkersPoint& p : facts.points)
    if (p.workers < largest.workers) fewer = std::max(fewer, rate_of(facts, p));
  const int most = largest.workers;
  const bool first = facts.points.size() == 1 || most == 1;
  if (most >= limit || !(first || rate_of(facts, largest) >= (1 + kNoGain) * fewer)) return {};
  return std::min(limit, most > 0 ? half_more(most) : cores_of_each(facts));
}

// Returns the number that should reach `wanted` samples/s, from the rate of one worker. If workers
// wait for storage, interpolates between measured numbers, because gains decrease.
double pointed_to(const WorkersFacts& facts, int fewer, int more, double wanted) {
  const double by_one = wanted / facts.asked.devices * facts.probes.sample_s;
  const WorkersPoint *low = point_at(facts, fewer), *high = point_at(facts, more);
  if (facts.probes.waiting_s <= 0 || by_one > fewer || low == nullptr || high == nullptr)
    return by_one;
  const double from = sure_rate(facts, *low), to = sure_rate(facts, *high);
  return fewer + (wanted - from) / (to - from) * (more - fewer);
}

bool suffices(const WorkersFacts& facts, const WorkersPoint& p, double best) {
  return told_by_cores(facts) ? suffices_by_cores(facts, p, best)
                              : sure_rate(facts, p) >= kNearBest * best;
}

// Searches around the first number near the best: one more must not gain, one fewer must lose.
std::optional<int> next_for_rate(const WorkersFacts& facts, int limit) {
  const double best = best_sure_rate(facts);
  if (best <= 0 || !contenders(facts, kFewTurns).empty()) return {};
  if (const auto more = more_for_rate(facts, limit)) return more;
  int chosen = limit, too_small = -1;
  for (const WorkersPoint& p : facts.points)
    if (suffices(facts, p, best)) chosen = std::min(chosen, p.workers);
  for (const WorkersPoint& p : facts.points)
    if (p.workers < chosen) too_small = std::max(too_small, p.workers);
  if (chosen - too_small <= 1) return {};
  return between(too_small, chosen, pointed_to(facts, too_small, chosen, kNearBest * best));
}

bool fed(const WorkersFacts& facts) {
  return std::ranges::any_of(facts.points, [&](const auto& p) { return feeds(facts, p); });
}

// Returns a number that was not measured yet. If no number meets the demand, searches for the best
// rate.
std::optional<int> next_new(const WorkersFacts& facts) {
  const int limit = search_limit(facts);
  if (facts.points.size() >= kMostPoints) return {};
  if (facts.points.empty()) return predicted_choice(facts, limit);
  std::optional<int> next;
  const auto is_new = [&] { return next && !measured(facts, *next); };
  if (facts.asked.demand > 0) next = next_for_demand(facts, limit);
  if (!is_new() && !fed(facts)) next = next_for_rate(facts, limit);
  return is_new() ? next : std::nullopt;
}

std::vector<int> ladder(const WorkersFacts& facts) {
  const int limit = search_limit(facts);
  std::vector<int> numbers = {std::max(1, predicted_choice(facts, limit))};
  while (numbers.size() < kLadder && numbers.back() < limit)
    numbers.push_back(std::min(limit, half_more(numbers.back())));
  return with_room(facts, numbers);
}

// Adds the best number so far if both fit. On a ladder also adds all larger numbers.
std::vector<int> with_best(const WorkersFacts& facts, int next) {
  const auto best = std::ranges::max_element(
      facts.points, {}, [&](const WorkersPoint& p) { return rate_of(facts, p); });
  if (facts.asked.demand > 0 || best == facts.points.end() || !(rate_of(facts, *best) > 0))
    return {next};
  std::vector<int> all = {next, best->workers};
  for (const WorkersPoint& p : facts.points)
    if (by_ladder(facts) && p.workers > next && p.workers != best->workers)
      all.push_back(p.workers);
  all = with_room(facts, all);
  std::ranges::sort(all);
  return all;
}

// Returns the number that the curve predicts, its neighbours, and the largest measured number.
// Empty if all are measured.
std::vector<int> next_by_curve(const WorkersFacts& facts) {
  const int limit = search_limit(facts);
  const auto fewest = fewest_by_curve(facts, limit);
  if (!fewest || facts.points.size() >= kMostPoints) return {};
  std::vector<int> all = {*fewest, *fewest - 1, *fewest + 1};
  std::erase_if(all, [&](int w) { return w < 1 || w > limit; });
  if (std::ranges::all_of(all, [&](int w) { return measured(facts, w); })) return {};
  int most = 0;
  for (const WorkersPoint& p : facts.points)
    if (p.error.empty()) most = std::max(most, p.workers);
  if (std::ranges::count(all, most) == 0) all.insert(all.begin() + 1, most);
  all = with_room(facts, all);
  std::ranges::sort(all);
  return all;
}

// Returns the numbers that the user asked for, together if possible and if they fit.
std::vector<int> next_wanted(const WorkersFacts& facts) {
  std::vector<int> next;
  for (const int w : facts.wanted)
    if (!measured(facts, w)) next.push_back(w);
  if (facts.asked.demand > 0 && next.size() > 1) next.resize(1);
  return with_room(facts, next);
}

}  // namespace

std::vector<int> next_trials(const WorkersFacts& facts) {
  if (const auto next = next_wanted(facts); !next.empty()) return next;
  if (by_ladder(facts) && facts.points.empty()) return ladder(facts);
  if (facts.wanted.empty()) {
    if (const auto next = next_by_curve(facts); !next.empty()) return next;
    if (const auto next = facts.curve ? std::nullopt : next_new(facts))
      return with_best(facts, *next);
  }
  const bool paced = facts.asked.demand > 0 && !facts.wanted.empty();
  return paced || fed(facts) ? std::vector<int>() : contenders(facts, kMostTurns);
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

double seconds_in_turn(const WorkersFacts& facts, const std::vector<int>& numbers, double left) {
  const auto count = static_cast<double>(numbers.size());
  const bool known = std::ranges::all_of(numbers, [&](int workers) {
    const WorkersPoint* point = point_at(facts, workers);
    return point != nullptr && point->runs.size() >= kFewTurns;
  });
  const double share = by_ladder(facts) ? kShareOfLadder : kShareOfNew;
  const double part = std::max(share * left, (kFewRoundsTake + facts.start_s) * count);
  const bool enough_for_more = left >= 2 * part && !facts.curve;
  return (known || !facts.wanted.empty() || !enough_for_more ? left : part) / count;
}

}  // namespace howmany::reports
