// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/history.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

#include "core/base/statistics.h"

namespace howmany::reports {
namespace {

using Values = std::vector<double>;

Values logs_of(const Series& series) {
  Values values;
  for (const HistoryPoint& point : series.points) values.push_back(std::log(point.ratio));
  return values;
}

double squares(std::span<const double> values) {
  const double center = mean(values);
  double sum = 0;
  for (const double x : values) sum += (x - center) * (x - center);
  return sum;
}

// Returns midranks, which bound the weight of outliers.
Values ranks_of(const Values& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return values[a] < values[b]; });
  Values ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) ranks[order[k]] = static_cast<double>(i + end + 1) / 2;
    i = end;
  }
  return ranks;
}

struct Split {
  size_t at = 0;  // index of the first value of the second part
  double size = 0;
};

// Returns the split with the largest difference of means, in standard errors.
Split best_split(const Values& values, size_t least) {
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  const auto n = static_cast<double>(values.size());
  Split best;
  double sum = 0;
  for (size_t k = 1; k + least <= values.size(); ++k) {
    sum += values[k - 1];
    if (k < least) continue;
    const auto left = static_cast<double>(k);
    const double size =
        std::abs(sum / left - (total - sum) / (n - left)) * std::sqrt(left * (n - left) / n);
    if (size > best.size) best = {k, size};
  }
  return best;
}

Values residuals(const Values& values, size_t at) {
  const double left = mean(std::span(values).first(at)),
               right = mean(std::span(values).subspan(at));
  Values rest = values;
  for (size_t i = 0; i < rest.size(); ++i) rest[i] -= i < at ? left : right;
  return rest;
}

struct Line {
  double slope = 0, error = 0;
};

Line line_through(const Values& values) {
  const auto n = static_cast<double>(values.size());
  const double center = (n - 1) / 2, level = mean(values);
  double cross = 0, square = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) - center;
    cross += x * (values[i] - level);
    square += x * x;
  }
  const double slope = cross / square;
  return {slope, std::max(0.0, squares(values) - slope * cross)};
}

Values residuals(const Values& values) {
  const double slope = line_through(values).slope, level = mean(values);
  const double center = (static_cast<double>(values.size()) - 1) / 2;
  Values rest = values;
  for (size_t i = 0; i < rest.size(); ++i) {
    rest[i] -= level + slope * (static_cast<double>(i) - center);
  }
  return rest;
}

// Lag-1 autocorrelation around a mean of 0, corrected for bias.
double correlation(const Values& rest) {
  double product = 0, all = 0;
  for (const double x : rest) all += x * x;
  for (size_t i = 1; i < rest.size(); ++i) product += rest[i] * rest[i - 1];
  return all > 0 ? product / all + 1 / static_cast<double>(rest.size()) : 0;
}

// Estimates the autocorrelation from differences of neighbours, which steps and trends hardly
// affect. For noise with correlation r, that of the differences is (r - 1) / 2.
double correlation_by_differences(const Values& values) {
  Values differences;
  for (size_t i = 1; i < values.size(); ++i) differences.push_back(values[i] - values[i - 1]);
  return 1 + 2 * correlation(differences);
}

// Returns the block length for the permutation, because a slow day affects several consecutive
// runs. Steps and trends look like correlation too, so the smallest of three estimates counts:
// without the suspected step, without a line, and from differences.
size_t block_length(const Values& values, size_t split) {
  const double r = std::min({correlation(residuals(values, split)), correlation(residuals(values)),
                             correlation_by_differences(values), 0.9});
  const auto n = static_cast<double>(values.size());
  if (r < 1.6 / std::sqrt(n)) return 1;
  const auto length = static_cast<size_t>(std::ceil(3 * (1 + r) / (1 - r)));
  return std::clamp<size_t>(length, 1, std::max<size_t>(1, values.size() / 6));
}

Values shuffled_blocks(const Values& values, size_t length, std::mt19937_64& random) {
  const size_t offset = random() % length;
  if (length == 1) {
    Values out = values;
    std::shuffle(out.begin(), out.end(), random);
    return out;
  }
  std::vector<size_t> starts;
  if (offset > 0) starts.push_back(0);
  for (size_t at = offset; at < values.size(); at += length) starts.push_back(at);
  std::vector<std::pair<size_t, size_t>> blocks;
  for (size_t i = 0; i < starts.size(); ++i) {
    blocks.emplace_back(starts[i], i + 1 < starts.size() ? starts[i + 1] : values.size());
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  Values out;
  for (const auto& [from, to] : blocks) {
    out.insert(out.end(), values.begin() + static_cast<std::ptrdiff_t>(from),
               values.begin() + static_cast<std::ptrdiff_t>(to));
  }
  return out;
}

// Running sums of centred values, which give the squares of any part at once.
class Sums {
 public:
  explicit Sums(const Values& values) : sums_(values.size() + 1), squares_(values.size() + 1) {
    const double center = mean(values);
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = values[i] - center;
      sums_[i + 1] = sums_[i] + x;
      squares_[i + 1] = squares_[i] + x * x;
    }
  }
  // Returns the sum of squared differences from the mean of [from, to).
  double squares(size_t from, size_t to) const {
    const double sum = sums_[to] - sums_[from];
    return std::max(0.0,
                    squares_[to] - squares_[from] - sum * sum / static_cast<double>(to - from));
  }

 private:
  Values sums_, squares_;
};

// Returns the range of split positions with a log-likelihood within 3.3 of the best.
std::pair<size_t, size_t> suspects(const Values& values, size_t at, size_t least) {
  const Sums sums(values);
  const auto error = [&](size_t k) {
    return std::max(sums.squares(0, k) + sums.squares(k, values.size()), 1e-300);
  };
  const auto n = static_cast<double>(values.size());
  const double limit = n / 2 * std::log(error(at)) + 3.3;
  size_t from = at, to = at;
  while (from > least && n / 2 * std::log(error(from - 1)) <= limit) --from;
  while (to + least < values.size() && n / 2 * std::log(error(to + 1)) <= limit) ++to;
  return {from, to};
}

// Returns an upper bound of the chance that shuffled values have a split of this size: Serfling's
// inequality for the smaller part, summed over both directions and all splits.
double bound_of_chance(const Values& values, double size) {
  const auto n = static_cast<double>(values.size());
  const auto [low, high] = std::ranges::minmax(values);
  const double range = high - low;
  return 2 * n * std::exp(-2 * size * size / (range * range) * n / (n + 2));
}

// Counts shuffles that are as extreme as the values. Returns the permutation p-value
// (z + 1) / (Z + 1), or a lower bound above alpha as soon as that is certain.
template <class IsExtreme>
double permutation_p(const HistoryOptions& options, const IsExtreme& is_extreme) {
  std::mt19937_64 random(options.seed);
  const double all = options.permutations + 1.0;
  int extreme = 0;
  for (int i = 0; i < options.permutations; ++i) {
    extreme += is_extreme(random) ? 1 : 0;
    if ((extreme + 1) / all > options.alpha) break;
  }
  return (extreme + 1) / all;
}

class Search {
 public:
  Search(const Values& values, const HistoryOptions& options)
      : values_(values), options_(options) {}

  std::vector<LevelChange> run() {
    divide(0, values_.size());
    std::sort(steps_.begin(), steps_.end(),
              [](const LevelChange& a, const LevelChange& b) { return a.first_bad < b.first_bad; });
    return std::move(steps_);
  }

 private:
  void divide(size_t first, size_t last) {
    const auto least = static_cast<size_t>(options_.min_points);
    if (last - first < 2 * least) return;
    const Values part(values_.begin() + static_cast<std::ptrdiff_t>(first),
                      values_.begin() + static_cast<std::ptrdiff_t>(last));
    const Values ranks = ranks_of(part);
    const Split split = best_split(ranks, least);
    if (split.at == 0) return;
    const double p = chance(ranks, split, least);
    if (p > options_.alpha) return;
    const double change =
        median(std::span(part).subspan(split.at)) - median(std::span(part).first(split.at));
    if (std::abs(change) >= std::log1p(options_.min_effect)) {
      const auto [from, to] = suspects(part, split.at, least);
      steps_.push_back({first + from - 1, first + to, std::expm1(change), p});
    }
    divide(first, first + split.at);
    divide(first + split.at, last);
  }

  // Returns the permutation p-value of a difference of this size. Never 0. No shuffle of a million
  // reaches a difference with a bound below kCertain, so none is drawn then.
  double chance(const Values& ranks, const Split& split, size_t least) const {
    constexpr double kCertain = 1e-7;
    const size_t length = block_length(ranks, split.at);
    if (length == 1 && bound_of_chance(ranks, split.size) < kCertain) {
      return 1 / (options_.permutations + 1.0);
    }
    return permutation_p(options_, [&](std::mt19937_64& random) {
      return best_split(shuffled_blocks(ranks, length, random), least).size >= split.size;
    });
  }

  const Values& values_;
  const HistoryOptions& options_;
  std::vector<LevelChange> steps_;
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

// True if three changes or more return to earlier levels.
bool flaps_slowly(const std::vector<LevelChange>& steps) {
  if (steps.size() < 3) return false;
  for (size_t i = 1; i < steps.size(); ++i) {
    const double there = std::log1p(steps[i - 1].change), back = std::log1p(steps[i].change);
    if (there * back > 0 || std::abs(there + back) > 0.5 * std::abs(there)) return false;
  }
  return true;
}

// Returns the permutation p-value of this slope.
double chance_of_slope(const Values& values, const HistoryOptions& options) {
  const Values ranks = ranks_of(values);
  const size_t split = best_split(ranks, 1).at;
  if (split == 0) return 1;  // all values are equal
  const size_t length = block_length(ranks, split);
  const double slope = std::abs(line_through(ranks).slope);
  return permutation_p(options, [&](std::mt19937_64& random) {
    return std::abs(line_through(shuffled_blocks(ranks, length, random)).slope) >= slope;
  });
}

// True if a line fits better than the steps by BIC. Each step costs two parameters.
bool line_fits_better(const Values& values, const std::vector<LevelChange>& steps,
                      const HistoryOptions& options) {
  const Line line = line_through(values);
  const auto n = static_cast<double>(values.size());
  if (std::abs(line.slope) * (n - 1) < std::log1p(options.min_effect)) return false;
  double error = 0;
  size_t from = 0;
  for (size_t i = 0; i <= steps.size(); ++i) {
    const size_t to = i < steps.size() ? steps[i].first_bad : values.size();
    if (to > from) error += squares(std::span(values).subspan(from, to - from));
    from = to;
  }
  const auto bic = [&](double sum, double parameters) {
    return n * std::log(std::max(sum, 1e-300) / n) + parameters * std::log(n);
  };
  return bic(line.error, 2) < bic(error, 1 + 2 * static_cast<double>(steps.size()));
}

}  // namespace

const char* name_of(Finding::Status status) {
  constexpr std::array<const char*, 5> kNames = {"too short", "stable", "step", "drift",
                                                 "flapping"};
  return kNames[static_cast<size_t>(status)];
}

Finding analyse(const Series& series, const HistoryOptions& options) {
  Finding finding;
  const Values values = logs_of(series);
  if (values.empty()) return finding;
  finding.level = std::exp(median(std::span(values).last(std::min<size_t>(5, values.size()))));
  if (values.size() < 2 * static_cast<size_t>(options.min_points)) {
    finding.status = Finding::Status::kTooShort;
    return finding;
  }
  finding.steps = Search(values, options).run();
  const double least_gap = std::log1p(options.min_effect);
  if (flaps_slowly(finding.steps) || flaps_fast(values, least_gap)) {
    finding.status = Finding::Status::kFlapping;
  } else if (line_fits_better(values, finding.steps, options) &&
             chance_of_slope(values, options) <= options.alpha) {
    finding.status = Finding::Status::kDrift;
    finding.drift = std::expm1(line_through(values).slope * static_cast<double>(values.size() - 1));
  } else if (!finding.steps.empty()) {
    finding.status = Finding::Status::kStep;
  }
  return finding;
}

}  // namespace howmany::reports
