// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace howmany::reports {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// The cost of changing to another backend: two standard deviations, squared. Without it, each noisy
// cell would be a range.
constexpr double kChange = 4;

using Row = std::vector<const CurvePoint*>;  // the points of one size, by backend

std::vector<Row> rows_of(const std::vector<NamedCurve>& curves) {
  std::vector<Row> rows;
  if (curves.empty()) return rows;
  for (const CurvePoint& p : curves[0].curve) {
    Row row;
    for (const NamedCurve& named : curves) row.push_back(at_size(named.curve, p.bytes));
    if (std::ranges::find(row, nullptr) == row.end()) rows.push_back(std::move(row));
  }
  return rows;
}

const CurvePoint& fastest(const Row& row) {
  return **std::ranges::min_element(row, {}, [](const CurvePoint* p) { return p->seconds; });
}

// Standard deviation of the logarithm; a 95 % interval is about four wide.
double deviation(const Interval& interval) {
  return interval.low > 0 ? std::log(interval.high / interval.low) / 4 : kNever;
}

// Returns the evidence against `other`, in squared standard deviations.
double against(const CurvePoint& fast, const CurvePoint& other) {
  const double off = std::log(other.seconds / fast.seconds);
  if (off == 0) return 0;
  if (!fast.interval || !other.interval || fast.interval->high < other.interval->low) return kNever;
  const double both = std::hypot(deviation(*fast.interval), deviation(*other.interval));
  return off * off / (both * both);
}

// The path through the sizes with the least cost, including changes (Viterbi algorithm).
class Path {
 public:
  explicit Path(const std::vector<Row>& rows) : cost_(rows[0].size(), 0) {
    for (const Row& row : rows) add(row);
  }

  std::vector<size_t> backends() const {
    size_t now = cheapest();
    std::vector<size_t> all(before_.size());
    for (size_t i = all.size(); i-- > 0; now = before_[i][now]) all[i] = now;
    return all;
  }

 private:
  size_t cheapest() const {
    return static_cast<size_t>(std::ranges::min_element(cost_) - cost_.begin());
  }

  void add(const Row& row) {
    const CurvePoint& fast = fastest(row);
    const size_t least = cheapest();
    const double change = before_.empty() ? 0 : cost_[least] + kChange;
    std::vector<size_t> from(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      const bool stays = cost_[i] <= change;
      from[i] = stays ? i : least;
      cost_[i] = (stays ? cost_[i] : change) + against(fast, *row[i]);
    }
    before_.push_back(std::move(from));
  }

  std::vector<double> cost_;                 // of the best path to each backend
  std::vector<std::vector<size_t>> before_;  // at each size: the previous backend on that path
};

bool apart_from_all(const Row& row, size_t best) {
  for (size_t i = 0; i < row.size(); ++i)
    if (i != best && !apart(*row[best], *row[i])) return false;
  return true;
}

// Returns the size at which the lines between two sizes cross, on logarithmic axes.
double crossing(const Row& before, const Row& here, size_t a, size_t b) {
  const double first = std::log(before[a]->seconds / before[b]->seconds);
  const double second = std::log(here[a]->seconds / here[b]->seconds);
  const double at = first == second ? 0.5 : std::clamp(first / (first - second), 0.0, 1.0);
  return std::exp(std::lerp(std::log(before[a]->bytes), std::log(here[a]->bytes), at));
}

}  // namespace

std::vector<BestRange> best_ranges(const std::vector<NamedCurve>& curves) {
  const std::vector<Row> rows = rows_of(curves);
  std::vector<BestRange> ranges;
  if (rows.empty()) return ranges;
  const std::vector<size_t> path = Path(rows).backends();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == 0)
      ranges.push_back({curves[path[0]].backend, 0});
    else if (path[i] != path[i - 1])
      ranges.push_back(
          {curves[path[i]].backend, crossing(rows[i - 1], rows[i], path[i - 1], path[i])});
    const bool told = apart_from_all(rows[i], path[i]);
    ranges.back().certain &= told;
    ranges.back().partly |= told;
  }
  return ranges;
}

}  // namespace howmany::reports
