// SPDX-License-Identifier: Apache-2.0
#include "reports/workers/points.h"

#include <algorithm>

#include "reports/results/rounds.h"

namespace howmany::reports {

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
  if (rates.empty()) return {kNaN, "1/s", {}, {}, 0, "rounds"};
  return metric_over_rounds(rates, "1/s");
}

Metric stall_of(const WorkersPoint& point) {
  if (point.stalls.empty()) return {kNaN, "ratio", {}, {}, 0, "rounds"};
  return metric_over_rounds(point.stalls, "ratio");
}

}  // namespace howmany::reports
