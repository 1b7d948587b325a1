// SPDX-License-Identifier: Apache-2.0
#include "reports/results/efficiency.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace howmany::reports {
namespace {

int64_t count(const Rounds& rounds) {
  int64_t n = 0;
  for (const auto& [round, seconds] : rounds) n += static_cast<int64_t>(seconds.size());
  return n;
}

// Returns the geometric mean, because half as fast and twice as fast are equally far from equal.
// The interval is that of this mean; absent with fewer than kRoundsForT values.
Estimate geometric_mean(const std::vector<double>& values) {
  const auto n = static_cast<int64_t>(values.size());
  const bool equal = std::ranges::count(values, values.front()) == n;  // exact, unlike logarithms
  std::vector<double> logs;
  for (const double x : values) logs.push_back(std::log(x));
  Estimate estimate{equal ? values.front() : std::exp(mean(logs)), {}, n, "rounds"};
  if (n < kRoundsForT) return estimate;
  const Interval interval = mean_interval(logs).value();
  estimate.interval = equal ? Interval{estimate.value, estimate.value}
                            : Interval{std::exp(interval.low), std::exp(interval.high)};
  return estimate;
}

// Extends `all` to cover `one`.
void widen(std::optional<Interval>& all, const Interval& one) {
  all = all ? Interval{std::min(all->low, one.low), std::max(all->high, one.high)} : one;
}

Rounds shared_rounds(const Rounds& rounds, const Rounds& with) {
  Rounds shared;
  for (const auto& [round, seconds] : rounds) {
    if (with.contains(round)) shared[round] = seconds;
  }
  return shared;
}

std::vector<double> medians(const Rounds& rounds) {
  std::vector<double> values;
  for (const auto& [round, seconds] : rounds) values.push_back(median(seconds));
  return values;
}

}  // namespace

Estimate step_time(const Rounds& rounds) {
  Estimate estimate = geometric_mean(medians(rounds));
  if (estimate.interval) return estimate;
  estimate.n = count(rounds);
  estimate.basis = "iterations";
  for (const auto& [round, seconds] : rounds) {
    const auto interval = median_interval(seconds);
    if (!interval) return Estimate{estimate.value, {}, estimate.n, estimate.basis};
    widen(estimate.interval, *interval);
  }
  return estimate;
}

Estimate time_ratio(const Rounds& base, const Rounds& other) {
  const Rounds a = shared_rounds(base, other), b = shared_rounds(other, base);
  if (a.empty()) throw std::invalid_argument("[time_ratio] no round has both sides");
  std::vector<double> ratios = medians(a);
  const std::vector<double> below = medians(b);
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= below[i];
  Estimate estimate = geometric_mean(ratios);
  if (estimate.interval) return estimate;
  estimate.n = count(b);
  estimate.basis = "iterations";
  for (const auto& [round, seconds] : a) {
    const auto above = median_interval(seconds), under = median_interval(b.at(round));
    if (!above || !under) return Estimate{estimate.value, {}, estimate.n, estimate.basis};
    widen(estimate.interval, ratio_interval(*above, *under));
  }
  return estimate;
}

Estimate scaled(Estimate estimate, double factor) {
  estimate.value *= factor;
  if (estimate.interval) {
    estimate.interval = Interval{estimate.interval->low * factor, estimate.interval->high * factor};
  }
  return estimate;
}

Estimate speedup(const Rounds& single, const Rounds& rounds, double work) {
  return scaled(time_ratio(single, rounds), work);
}

std::optional<int> rounds_to_decide(const Estimate& estimate, double threshold, int most) {
  if (!estimate.interval || estimate.basis != "rounds") return std::nullopt;
  if (estimate.n < 2 || estimate.n > most) return std::nullopt;
  const auto [low, high] = *estimate.interval;
  if (threshold <= low || threshold > high) return std::nullopt;
  const auto n = static_cast<int>(estimate.n);
  const double half = (std::log(high) - std::log(low)) / 2;
  const double spread = half * std::sqrt(n) / student_t(n - 1);
  const double gap = std::abs(std::log(estimate.value / threshold));
  for (int rounds = n + 1; rounds <= most; ++rounds) {
    if (student_t(rounds - 1) * spread / std::sqrt(rounds) < gap) return rounds;
  }
  return std::nullopt;
}

}  // namespace howmany::reports
