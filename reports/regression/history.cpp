// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/history.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <span>

#include "core/base/statistics.h"

namespace howmany::reports {
namespace {

using Values = std::vector<double>;
using Cuts = std::vector<size_t>;  // first point of each level but the first

constexpr int kRounds = 2;              // of estimates of the autocorrelation
constexpr double kMinVariance = 1e-10;  // of logarithms: a clock's resolution

// Sums of centred values, which give the squares of any part at once.
class Sums {
 public:
  explicit Sums(const Values& values)
      : center_(mean(values)), sums_(values.size() + 1), squares_(values.size() + 1) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = values[i] - center_;
      sums_[i + 1] = sums_[i] + x;
      squares_[i + 1] = squares_[i] + x * x;
    }
  }
  size_t size() const { return sums_.size() - 1; }
  double mean_of(size_t from, size_t to) const {
    return center_ + (sums_[to] - sums_[from]) / static_cast<double>(to - from);
  }
  // Returns the sum of squared differences from the mean of [from, to).
  double squares(size_t from, size_t to) const {
    const double sum = sums_[to] - sums_[from];
    return std::max(0.0,
                    squares_[to] - squares_[from] - sum * sum / static_cast<double>(to - from));
  }

 private:
  double center_;
  Values sums_, squares_;
};

// Returns the variance of the noise from differences of neighbours, which steps and trends hardly
// affect. Autocorrelation makes it too small.
double variance_of_differences(const Values& values) {
  Values sizes;
  double squares = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    sizes.push_back(std::abs(values[i] - values[i - 1]));
    squares += sizes.back() * sizes.back();
  }
  const double deviation = 1.4826 * median(sizes);
  const double variance =
      deviation > 0 ? deviation * deviation : squares / static_cast<double>(sizes.size());
  return std::max(variance / 2, kMinVariance);
}

// Moves outliers to three standard deviations from the median of seven neighbours (Hampel's
// filter). A step of two points or more stays.
Values without_outliers(const Values& values, double variance) {
  constexpr size_t kHalf = 3;
  const double limit = 3 * std::sqrt(variance);
  Values clipped = values;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t from = i - std::min(i, kHalf), to = std::min(values.size(), i + kHalf + 1);
    const double center = median(std::span(values).subspan(from, to - from));
    clipped[i] = std::clamp(values[i], center - limit, center + limit);
  }
  return clipped;
}

// Returns the cuts with the least squares plus a penalty each: PELT (Killick, Fearnhead and Eckley,
// JASA 2012). Long series keep the best candidates only, so time is linear.
Cuts best_cuts(const Sums& sums, double penalty, size_t least) {
  constexpr size_t kMaxCandidates = 256;
  const size_t n = sums.size();
  Values best(n + 1, std::numeric_limits<double>::infinity());
  Cuts previous(n + 1);
  std::vector<std::pair<double, size_t>> candidates = {{0, 0}};  // cost of [start, to), start
  best[0] = -penalty;
  for (size_t to = least; to <= n; ++to) {
    for (auto& [cost, start] : candidates) cost = best[start] + sums.squares(start, to);
    const auto lowest = std::ranges::min_element(candidates);
    best[to] = lowest->first + penalty;
    previous[to] = lowest->second;
    std::erase_if(candidates, [&](const auto& candidate) { return candidate.first > best[to]; });
    if (candidates.size() > kMaxCandidates) {
      const auto middle = candidates.begin() + kMaxCandidates / 2;
      std::ranges::nth_element(candidates, middle);
      candidates.erase(middle, candidates.end());
    }
    if (to + 1 >= 2 * least) candidates.emplace_back(0, to + 1 - least);
  }
  Cuts cuts;
  for (size_t at = previous[n]; at > 0; at = previous[at]) cuts.push_back(at);
  std::ranges::reverse(cuts);
  return cuts;
}

Values residuals(const Values& values, const Sums& sums, const Cuts& cuts) {
  Values rest = values;
  size_t from = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const size_t to = i < cuts.size() ? cuts[i] : values.size();
    for (size_t k = from; k < to; ++k) rest[k] -= sums.mean_of(from, to);
    from = to;
  }
  return rest;
}

// Lag-1 autocorrelation of the noise around the levels, corrected for bias; 0 if not significant.
double correlation(const Values& rest, size_t levels) {
  const auto n = static_cast<double>(rest.size());
  double product = 0, all = 0;
  for (const double x : rest) all += x * x;
  for (size_t i = 1; i < rest.size(); ++i) product += rest[i] * rest[i - 1];
  const double r = all > 0 ? product / all + static_cast<double>(levels) / n : 0;
  return r < 2 / std::sqrt(n) ? 0 : std::min(r, 0.8);
}

// Two-sided p-value of Student's t.
double p_of(double t, double degrees) {
  const boost::math::students_t student(std::max(1.0, degrees));
  return 2 * boost::math::cdf(boost::math::complement(student, std::abs(t)));
}

struct Line {
  double slope = 0, error = 0, p = 1;
};

// `inflation` is the number of points that carry as much as one independent point.
Line line_through(const Values& values, double inflation) {
  const auto n = static_cast<double>(values.size());
  const double center = (n - 1) / 2, level = mean(values);
  double cross = 0, square = 0, all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - center, y = values[i] - level;
    cross += x * y;
    square += x * x;
    all += y * y;
  }
  Line line{cross / square, std::max(0.0, all - cross * cross / square)};
  const double variance = std::max(line.error / (n - 2), kMinVariance) * inflation / square;
  line.p = p_of(line.slope / std::sqrt(variance), n / inflation - 2);
  return line;
}

class Search {
 public:
  Search(const Values& values, const HistoryOptions& options)
      : options_(options),
        clipped_(without_outliers(values, variance_of_differences(values))),
        sums_(clipped_),
        least_(static_cast<size_t>(options.min_points)) {
    // The first cuts ignore the autocorrelation. Their residuals give it, less what they absorb.
    const double variance = variance_of_differences(clipped_);
    cuts_ = best_cuts(sums_, penalty() * variance, least_);
    for (int round = 0; round < kRounds; ++round) {
      const double r = correlation(residuals(clipped_, sums_, cuts_), cuts_.size() + 1);
      if ((1 + r) / (1 - r) <= inflation_) break;
      inflation_ = (1 + r) / (1 - r);
      cuts_ = best_cuts(sums_, penalty() * variance / (1 - r) * inflation_, least_);
    }
    while (remove_weakest()) {
    }
  }

  std::vector<LevelChange> steps(const Values& values) const {
    std::vector<LevelChange> steps;
    for (size_t i = 0; i < cuts_.size(); ++i) {
      const auto [from, at, to] = around(i);
      const double change = median(std::span(values).subspan(at, to - at)) -
                            median(std::span(values).subspan(from, at - from));
      const auto [first, last] = suspects(from, at, to);
      steps.push_back({first - 1, last, std::expm1(change), p_value(i)});
    }
    return steps;
  }

  double inflation() const { return inflation_; }
  const Values& clipped() const { return clipped_; }
  size_t last_cut() const { return cuts_.empty() ? 0 : cuts_.back(); }

  // True if a line fits better than the levels by BIC. A cut costs 1.5 parameters: its level, and
  // its place among n.
  bool is_line(const Line& line) const {
    const auto n = static_cast<double>(sums_.size()) / inflation_;
    const double rise = std::abs(line.slope) * static_cast<double>(sums_.size() - 1);
    if (rise < std::log1p(options_.min_effect) || line.p > options_.alpha) return false;
    double error = 0;
    for (const double x : residuals(clipped_, sums_, cuts_)) error += x * x;
    const auto bic = [&](double sum, double parameters) {
      return n * std::log(std::max(sum, 1e-300)) + parameters * std::log(n);
    };
    return bic(line.error, 2) < bic(error, 1 + 1.5 * static_cast<double>(cuts_.size()));
  }

 private:
  // Of a cut, in variances of the noise over a long time.
  double penalty() const { return std::max(14.0, 3 * std::log(sums_.size())); }

  // Returns the first point of the level before cut i, the cut, and the end of the level after.
  std::array<size_t, 3> around(size_t i) const {
    return {i > 0 ? cuts_[i - 1] : 0, cuts_[i], i + 1 < cuts_.size() ? cuts_[i + 1] : sums_.size()};
  }

  double difference(size_t i) const {
    const auto [from, at, to] = around(i);
    return sums_.mean_of(at, to) - sums_.mean_of(from, at);
  }

  double p_value(size_t i) const {
    const auto [from, at, to] = around(i);
    const auto left = static_cast<double>(at - from), right = static_cast<double>(to - at);
    const double squares = sums_.squares(from, at) + sums_.squares(at, to);
    const double variance = std::max(squares / (left + right - 2), kMinVariance) * inflation_;
    return p_of(difference(i) / std::sqrt(variance * (1 / left + 1 / right)),
                (left + right) / inflation_ - 2);
  }

  // 0: the change is significant and large enough.
  double weakness(size_t i) const {
    if (const double p = p_value(i); p > options_.alpha) return 1 + p;
    return std::max(0.0, 1 - std::abs(difference(i)) / std::log1p(options_.min_effect));
  }

  // Removes every cut that is weaker than its neighbours, as the merge step of Apache Otava does.
  // Returns false if there is none.
  bool remove_weakest() {
    Values weak(cuts_.size());
    for (size_t i = 0; i < weak.size(); ++i) weak[i] = weakness(i);
    Cuts kept;
    for (size_t i = 0; i < weak.size(); ++i) {
      const bool is_weakest =
          (i == 0 || weak[i] > weak[i - 1]) && (i + 1 == weak.size() || weak[i] >= weak[i + 1]);
      if (weak[i] == 0 || !is_weakest) kept.push_back(cuts_[i]);
    }
    const bool removed = kept.size() < cuts_.size();
    cuts_ = std::move(kept);
    return removed;
  }

  // Returns the range of cuts with a log-likelihood within 3.3 of the best.
  std::pair<size_t, size_t> suspects(size_t from, size_t at, size_t to) const {
    const double half = static_cast<double>(to - from) / inflation_ / 2;
    const auto error = [&](size_t cut) {
      return half * std::log(std::max(sums_.squares(from, cut) + sums_.squares(cut, to), 1e-300));
    };
    const double limit = error(at) + 3.3;
    size_t first = at, last = at;
    while (first > from + 1 && error(first - 1) <= limit) --first;
    while (last + 1 < to && error(last + 1) <= limit) ++last;
    return {first, last};
  }

  const HistoryOptions& options_;
  Values clipped_;
  Sums sums_;
  size_t least_;
  Cuts cuts_;
  double inflation_ = 1;
};

// True if values alternate between two separate levels.
bool flaps_fast(const Values& values, double least_gap) {
  Values order = values;
  std::sort(order.begin(), order.end());
  size_t at = 1;
  for (size_t i = 1; i < order.size(); ++i) {
    if (order[i] - order[i - 1] > order[at] - order[at - 1]) at = i;
  }
  const size_t few = std::max<size_t>(2, order.size() / 6);
  if (at < few || order.size() - at < few) return false;
  const double gap = order[at] - order[at - 1], cut = std::midpoint(order[at], order[at - 1]);
  const double within = std::max(order[at - 1] - order.front(), order.back() - order[at]);
  int switches = 0;
  for (size_t i = 1; i < values.size(); ++i) switches += (values[i] > cut) != (values[i - 1] > cut);
  return gap > least_gap && gap > within && switches >= 4;
}

// True if four changes or more return to earlier levels.
bool flaps_slowly(const std::vector<LevelChange>& steps) {
  if (steps.size() < 4) return false;
  for (size_t i = 1; i < steps.size(); ++i) {
    const double there = std::log1p(steps[i - 1].change), back = std::log1p(steps[i].change);
    if (there * back > 0 || std::abs(there + back) > 0.5 * std::abs(there)) return false;
  }
  return true;
}

}  // namespace

const char* name_of(Finding::Status status) {
  constexpr std::array<const char*, 5> kNames = {"too short", "stable", "step", "drift",
                                                 "flapping"};
  return kNames[static_cast<size_t>(status)];
}

Finding analyse(const Series& series, const HistoryOptions& options) {
  Finding finding;
  Values values;
  for (const HistoryPoint& point : series.points) values.push_back(std::log(point.ratio));
  if (values.empty()) return finding;
  const auto level_of_last = [&](size_t count) {
    return std::exp(median(std::span(values).last(std::min<size_t>(count, values.size()))));
  };
  finding.level = level_of_last(5);
  if (values.size() < 2 * static_cast<size_t>(options.min_points)) {
    finding.status = Finding::Status::kTooShort;
    return finding;
  }
  const Search search(values, options);
  finding.steps = search.steps(values);
  finding.level = level_of_last(std::min<size_t>(5, values.size() - search.last_cut()));
  const Line line = line_through(search.clipped(), search.inflation());
  if (flaps_slowly(finding.steps) || flaps_fast(values, std::log1p(options.min_effect))) {
    finding.status = Finding::Status::kFlapping;
  } else if (search.is_line(line)) {
    finding.status = Finding::Status::kDrift;
    finding.drift = std::expm1(line.slope * static_cast<double>(values.size() - 1));
  } else if (!finding.steps.empty()) {
    finding.status = Finding::Status::kStep;
  }
  return finding;
}

}  // namespace howmany::reports
