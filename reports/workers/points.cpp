// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/points.h"

#include <algorithm>

#include "reports/results/rounds.h"

namespace howmany::reports {
namespace {

constexpr double kEnough = 0.98;        // of the best rate: more workers are not worth it
constexpr double kMayEnough = 0.95;     // unless the interval excludes kEnough
constexpr double kUnclear = 0.85;       // without an interval
constexpr double kClearlySlower = 0.8;  // without an interval

Rounds times_of(const WorkersPoint& point) {
  Rounds rounds;
  for (const auto& [round, rate] : point.rates) rounds[round] = {1 / rate};
  return rounds;
}

bool share_a_round(const WorkersPoint& a, const WorkersPoint& b) {
  return std::ranges::any_of(a.rates, [&](auto& rate) { return b.rates.contains(rate.first); });
}

// Returns the point with the most rounds among those that share rounds with both, or nullptr.
const WorkersPoint* link_of(const WorkersPoints& points, const WorkersPoint& a,
                            const WorkersPoint& b) {
  const WorkersPoint* link = nullptr;
  for (const WorkersPoint& point : points)
    if (share_a_round(point, a) && share_a_round(point, b) &&
        (link == nullptr || point.rates.size() > link->rates.size()))
      link = &point;
  return link;
}

// More workers must be shown to pay.
bool reaches(const Estimate& share) {
  if (!share.interval) return share.value >= kUnclear;
  return share.value >= (share.interval->high >= kEnough ? kMayEnough : kEnough);
}

Metric over_turns(const std::vector<double>& values, const char* unit) {
  if (values.empty()) return {kNaN, unit, {}, {}, 0, "rounds"};
  return metric_over_rounds(values, unit);
}

}  // namespace

WorkersPoint& point_at(WorkersPoints& points, int workers) {
  const auto place = std::ranges::lower_bound(points, workers, {}, &WorkersPoint::workers);
  if (place != points.end() && place->workers == workers) return *place;
  WorkersPoint point;
  point.workers = workers;
  return *points.insert(place, point);
}

const WorkersPoint* find_point(const WorkersPoints& points, int workers) {
  const auto found = std::ranges::find(points, workers, &WorkersPoint::workers);
  return found == points.end() ? nullptr : &*found;
}

int next_round(const WorkersPoints& points) {
  int next = 0;
  for (const WorkersPoint& point : points)
    if (!point.rates.empty()) next = std::max(next, point.rates.rbegin()->first + 1);
  return next;
}

Metric rate_of(const WorkersPoint& point) {
  std::vector<double> rates;
  for (const auto& [round, rate] : point.rates) rates.push_back(rate);
  return over_turns(rates, "1/s");
}

Metric stall_of(const WorkersPoint& point) { return over_turns(point.stalls, "ratio"); }

Estimate gain(const WorkersPoints& points, const WorkersPoint& point, const WorkersPoint& than) {
  if (share_a_round(point, than)) return time_ratio(times_of(than), times_of(point));
  const WorkersPoint* link = link_of(points, point, than);
  if (link == nullptr) return {rate_of(point).value / rate_of(than).value, {}, 0, "rounds"};
  const Estimate above = gain(points, point, *link), below = gain(points, than, *link);
  Estimate linked{above.value / below.value, {}, std::min(above.n, below.n), "rounds"};
  if (above.interval && below.interval)
    linked.interval = ratio_interval(*above.interval, *below.interval);
  return linked;
}

const WorkersPoint* best_of(const WorkersPoints& points) {
  const WorkersPoint* best = nullptr;
  for (int pass = 0; pass < 2; ++pass)  // noise may make A faster than B, B than C, and C than A
    for (const WorkersPoint& point : points) {
      if (!point.counts() || &point == best) continue;
      if (best == nullptr || gain(points, point, *best).value > 1) best = &point;
    }
  return best;
}

const WorkersPoint& fewest_near(const WorkersPoints& points, const WorkersPoint& best) {
  for (const WorkersPoint& point : points) {
    if (&point == &best) break;
    if (!point.counts()) continue;
    if (reaches(gain(points, point, best))) return point;
  }
  return best;
}

const WorkersPoint* chosen_of(const WorkersFacts& facts) {
  for (const WorkersPoint& point : facts.points)
    if (facts.has_demand() && point.counts() && stall_of(point).value <= facts.max_stall)
      return &point;
  const WorkersPoint* best = best_of(facts.points);
  return best == nullptr ? nullptr : &fewest_near(facts.points, *best);
}

bool may_win(const WorkersPoints& points, const WorkersPoint& point) {
  if (!point.counts()) return false;
  const Estimate share = gain(points, point, *best_of(points));
  return share.interval ? share.interval->high >= kEnough : share.value >= kClearlySlower;
}

const WorkersPoint* unexplained_by_stall(const WorkersPoints& points, const WorkersPoint& chosen) {
  for (const WorkersPoint& point : points) {
    if (point.workers >= chosen.workers) break;
    if (!point.counts() || point.stalls.empty()) continue;
    const Metric stall = stall_of(point);
    const double works = 1 - stall.high.value_or(stall.value);
    const Estimate faster = gain(points, chosen, point);
    const double least = faster.interval ? faster.interval->low : faster.value;
    if (least * works > kNoticeable) return &point;
  }
  return nullptr;
}

std::map<int, int> turns_missing(const WorkersFacts& facts) {
  std::map<int, int> missing;
  const WorkersPoint* chosen = chosen_of(facts);
  if (chosen == nullptr) return missing;
  const WorkersPoint* than = unexplained_by_stall(facts.points, *chosen);
  for (const WorkersPoint& point : facts.points) {
    const bool wins = !facts.has_demand() && may_win(facts.points, point);
    const bool unexplained = than != nullptr && (&point == than || &point == chosen);
    const int needed = unexplained ? 2 * kMinTurns : wins || &point == chosen ? kMinTurns : 0;
    if (point.turns() < needed) missing[point.workers] = needed - point.turns();
  }
  return missing;
}

}  // namespace howmany::reports
