// SPDX-License-Identifier: Apache-2.0
#include "reports/results/rounds.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "core/base/statistics.h"

namespace howmany::reports {
namespace {

constexpr double kBesideSeconds = 1.4;    // start and exit of a bench and its ranks
constexpr double kRoundSeconds = 4;       // minimum useful seconds of a round
constexpr double kMinBackendSeconds = 1;  // for one backend
constexpr double kMaxToOwed = 0.75;       // share for incomplete backends if others need time too
constexpr int kMinRounds = 3, kMaxRounds = 5;

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

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Returns the equal share of `left` for those whose needs are not met exactly. Takes needs in the
// order of `better`, and grants each while that is `better` for the rest.
template <typename Better>
double level(std::vector<double> needs, double left, Better better) {
  std::ranges::sort(needs, better);
  auto sharing = static_cast<double>(needs.size());
  for (const double need : needs) {
    if (!better(need, left / sharing)) break;
    left -= need;
    if (--sharing == 0) break;
  }
  return sharing > 0 ? left / sharing : 0;
}

// With enough time: no run gets less than this.
double lowest(const std::vector<double>& needs, double left) {
  return level(needs, left, std::greater<>());
}

// Without enough time: no run gets more than this.
double highest(const std::vector<double>& needs, double left) {
  return level(needs, left, std::less<>());
}

}  // namespace

Metric metric_over_rounds(const std::vector<double>& values, const std::string& unit) {
  Metric metric{median(values), unit, {}, {}, static_cast<int64_t>(values.size()), "rounds"};
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

int plan_rounds(double budget, int backends, std::optional<int> asked) {
  const int room = static_cast<int>(budget / backends / (kBesideSeconds + kRoundSeconds));
  return asked.value_or(room < kMinRounds ? 1 : std::min(room, kMaxRounds));
}

double RoundTime::left(double now, std::span<const std::string> runs) const {
  double left = budget_ - now;
  for (const std::string& backend : runs) {
    const auto last = last_.find(backend);
    left -= last == last_.end() ? kBesideSeconds
                                : std::max(0.0, last->second.seconds - last->second.measuring);
  }
  return left;
}

double RoundTime::seconds_next(double now, std::span<const std::string> runs) const {
  const double left = this->left(now, runs);
  if (left <= kMinBackendSeconds) return kMinBackendSeconds;
  std::vector<double> needs;
  for (const std::string& backend : runs) {
    const auto last = last_.find(backend);
    needs.push_back(last == last_.end() ? left / static_cast<double>(runs.size())
                                        : last->second.needs);
  }
  const bool enough = sum(needs) <= left;
  const double dealt =
      enough ? std::max(needs.front(), lowest(needs, left)) : scarce(runs, needs, left);
  return std::max(kMinBackendSeconds, dealt);
}

double RoundTime::scarce(std::span<const std::string> runs, const std::vector<double>& needs,
                         double left) const {
  std::set<std::string> had = whole_;
  std::vector<double> owed, others;
  for (size_t i = 0; i < runs.size(); ++i)
    (had.insert(runs[i]).second ? owed : others).push_back(needs[i]);
  const double first = std::min(sum(owed), std::max(kMaxToOwed * left, left - sum(others)));
  const double most =
      whole_.contains(runs.front()) ? highest(others, left - first) : highest(owed, first);
  return std::min(needs.front(), most);
}

void RoundTime::took(const std::string& backend, const Run& run) {
  last_[backend] = run;
  if (run.whole) whole_.insert(backend);
}

}  // namespace howmany::reports
