// SPDX-License-Identifier: Apache-2.0
#include "reports/results/rounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "core/base/statistics.h"

namespace howmany::reports {
namespace {

using Cell = std::vector<const Measurement*>;

bool measured(const Measurement* m) { return !has_failed(*m) && why_skipped(*m).empty(); }

Measurement merge(const Cell& cell) {
  const auto failed = std::ranges::find_if(cell, [](auto* m) { return has_failed(*m); });
  if (failed != cell.end()) return **failed;
  Cell good;
  std::ranges::copy_if(cell, std::back_inserter(good), measured);
  if (good.empty()) return *cell.front();
  Measurement merged = *good.front();
  if (good.size() == 1) return merged;
  for (auto& [name, metric] : merged.metrics) {
    std::vector<double> values;
    for (const Measurement* m : good)
      if (const double value = value_of(*m, name); std::isfinite(value)) values.push_back(value);
    if (!values.empty()) metric = metric_over_rounds(values, metric.unit);
  }
  return merged;
}

// The center of repeat_interval().
double center(const std::vector<double>& values) {
  if (std::ranges::count(values, values.front()) == std::ssize(values)) return values.front();
  if (!std::ranges::all_of(values, [](double x) { return x > 0; })) return mean(values);
  std::vector<double> logs;
  for (const double x : values) logs.push_back(std::log(x));
  return std::exp(mean(logs));
}

}  // namespace

Metric metric_over_rounds(const std::vector<double>& values, const std::string& unit) {
  Metric metric{center(values), unit, {}, {}, static_cast<int64_t>(values.size()), "rounds"};
  const auto interval = repeat_interval(values);
  if (!interval) return metric;
  metric.low = interval->low;
  metric.high = interval->high;
  return metric;
}

std::vector<Measurement> over_rounds(const std::vector<std::vector<Measurement>>& rounds) {
  std::vector<Cell> cells;
  using Key = std::tuple<std::string, std::string, std::map<std::string, std::string>>;
  std::map<std::pair<Key, int>, size_t> places;
  for (const auto& round : rounds) {
    std::map<Key, int> seen;  // a model has one cell per bucket, and buckets may be equal
    for (const Measurement& m : round) {
      const Key key(m.suite, m.name, m.parameters);
      const auto [place, fresh] = places.emplace(std::pair(key, seen[key]++), cells.size());
      if (fresh) cells.emplace_back();
      cells[place->second].push_back(&m);
    }
  }
  std::vector<Measurement> merged;
  std::ranges::transform(cells, std::back_inserter(merged), merge);
  return merged;
}

}  // namespace howmany::reports
