// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/compare.h"

#include <algorithm>

namespace howmany::reports {
namespace {

constexpr double kEnough = 0.98;     // of the best rate: more workers are not worth it
constexpr double kMayEnough = 0.95;  // unless the interval excludes kEnough
constexpr double kUnclear = 0.85;    // without an interval

bool counts(const WorkersPoint& point) { return point.error.empty() && !point.rates.empty(); }

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

}  // namespace

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
  for (const WorkersPoint& point : points)
    if (counts(point) && (best == nullptr || gain(points, point, *best).value > 1)) best = &point;
  return best;
}

const WorkersPoint& fewest_near(const WorkersPoints& points, const WorkersPoint& best) {
  for (const WorkersPoint& point : points) {
    if (&point == &best) break;
    if (!counts(point)) continue;
    if (reaches(gain(points, point, best))) return point;
  }
  return best;
}

const WorkersPoint* fewest_that_feed(const WorkersPoints& points, double most_stall) {
  for (const WorkersPoint& point : points)
    if (counts(point) && stall_of(point).value <= most_stall) return &point;
  return nullptr;
}

}  // namespace howmany::reports
