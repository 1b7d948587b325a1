// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/ranks.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace howmany::reports {
namespace {

constexpr size_t kExactPairs = 64, kExactProducts = 400;
constexpr double kTail = (1 - kConfidence) / 2;

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  if (copy.empty()) throw std::invalid_argument("[ranks] the sample is empty");
  if (!std::all_of(copy.begin(), copy.end(), [](double x) { return std::isfinite(x); })) {
    throw std::invalid_argument("[ranks] a value of the sample is not finite");
  }
  std::sort(copy.begin(), copy.end());
  return copy;
}

double normal_above(double z) {
  return boost::math::cdf(boost::math::complement(boost::math::normal(), z));
}

// Calls `take` with the places [from, to) of each group of equal values.
template <class Take>
void each_tie(const std::vector<double>& values, const Take& take) {
  for (size_t from = 0, to = 0; from < values.size(); from = to) {
    while (to < values.size() && values[to] == values[from]) ++to;
    take(from, to);
  }
}

// Returns twice the midrank of each value, an integer even with ties. `values` is ascending.
std::vector<int64_t> doubled_midranks(const std::vector<double>& values) {
  std::vector<int64_t> ranks;
  each_tie(values, [&](size_t from, size_t to) {
    ranks.insert(ranks.end(), to - from, static_cast<int64_t>(from + to + 1));
  });
  return ranks;
}

// Returns the sum of t^3 - t over groups of t tied values.
double tie_term(const std::vector<double>& values) {
  double sum = 0;
  each_tie(values, [&](size_t from, size_t to) {
    const auto t = static_cast<double>(to - from);
    sum += t * t * t - t;
  });
  return sum;
}

// Returns P(sum <= s) for s = 0, 1, ..., if every rank is added with probability 1/2.
std::vector<double> half_sum_distribution(std::span<const int64_t> ranks) {
  std::vector<double> share = {1};
  for (const int64_t rank : ranks) {
    std::vector<double> next(share.size() + static_cast<size_t>(rank));
    for (size_t s = 0; s < share.size(); ++s) {
      next[s] += share[s] / 2;
      next[s + static_cast<size_t>(rank)] += share[s] / 2;
    }
    share.swap(next);
  }
  std::partial_sum(share.begin(), share.end(), share.begin());
  return share;
}

const std::vector<double>& signed_rank_distribution(size_t n) {
  thread_local std::map<size_t, std::vector<double>> known;
  std::vector<double>& table = known[n];
  if (table.empty()) {
    std::vector<int64_t> ranks(n);
    std::iota(ranks.begin(), ranks.end(), 1);
    table = half_sum_distribution(ranks);
  }
  return table;
}

// Returns P(U <= u) for samples of m and n: the number of partitions in an m by n box, by Gauss's
// product.
std::vector<double> box_distribution(size_t m, size_t n) {
  std::vector<double> ways(m * n + 1);
  ways[0] = 1;
  for (size_t i = 1; i <= m; ++i) {
    const size_t up = n + i;
    for (size_t u = m * n; u >= up && u > 0; --u) ways[u] -= ways[u - up];
    for (size_t u = i; u <= m * n; ++u) ways[u] += ways[u - i];
  }
  std::partial_sum(ways.begin(), ways.end(), ways.begin());
  for (double& share : ways) share /= ways.back();
  ways.back() = 1;
  return ways;
}

const std::vector<double>& rank_sum_distribution(size_t m, size_t n) {
  thread_local std::map<std::pair<size_t, size_t>, std::vector<double>> known;
  std::vector<double>& table = known[{std::min(m, n), std::max(m, n)}];
  if (table.empty()) table = box_distribution(std::min(m, n), std::max(m, n));
  return table;
}

// Returns the largest k with P(statistic < k) of at most 2.5 %. The k-th value from either end is
// the bound.
int64_t tail_rank(const std::vector<double>& distribution) {
  const auto it = std::upper_bound(distribution.begin(), distribution.end(), kTail);
  return it - distribution.begin();
}

int64_t tail_rank(double center, double deviation) {
  const double z = boost::math::quantile(boost::math::normal(), 1 - kTail);
  return std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - z * deviation)));
}

// Returns the k-th smallest value (from 1) without listing values. `at_most(t)` counts the values
// up to t.
template <class AtMost>
double select(int64_t k, double low, double high, const AtMost& at_most) {
  for (int step = 0; step < 100; ++step) {
    const double middle = std::midpoint(low, high);
    if (middle == low || middle == high) break;
    (at_most(middle) >= k ? high : low) = middle;
  }
  return at_most(low) >= k ? low : high;
}

// Returns the median and the k-th value from both ends. `pick(k)` is the k-th smallest of `count`.
template <class Pick>
Shift shift_from(int64_t count, int64_t tail, const Pick& pick) {
  Shift shift;
  shift.value = std::midpoint(pick((count + 1) / 2), pick(count / 2 + 1));
  if (tail > 0) shift.interval = Interval{pick(tail), pick(count + 1 - tail)};
  return shift;
}

int64_t averages_up_to(const std::vector<double>& order, double t) {
  int64_t count = 0;
  auto j = static_cast<int64_t>(order.size()) - 1;
  for (int64_t i = 0; i <= j; ++i) {
    while (j >= i && std::midpoint(order[i], order[j]) > t) --j;
    count += std::max<int64_t>(0, j - i + 1);
  }
  return count;
}

int64_t differences_up_to(const std::vector<double>& from, const std::vector<double>& to,
                          double t) {
  int64_t count = 0;
  size_t i = 0;
  for (const double y : to) {
    while (i < from.size() && y - from[i] > t) ++i;
    count += static_cast<int64_t>(from.size() - i);
  }
  return count;
}

int64_t pair_tail(size_t pairs) {
  if (pairs <= kExactPairs) return tail_rank(signed_rank_distribution(pairs));
  const auto n = static_cast<double>(pairs);
  return tail_rank(n * (n + 1) / 4, std::sqrt(n * (n + 1) * (2 * n + 1) / 24));
}

int64_t sample_tail(size_t m, size_t n) {
  if (m * n <= kExactProducts) return tail_rank(rank_sum_distribution(m, n));
  const auto a = static_cast<double>(m), b = static_cast<double>(n);
  return tail_rank(a * b / 2, std::sqrt(a * b * (a + b + 1) / 12));
}

double clamped(double p) { return std::clamp(p, 0.0, 1.0); }

}  // namespace

Shift paired_shift(std::span<const double> differences) {
  const std::vector<double> order = sorted(differences);
  const auto n = static_cast<int64_t>(order.size());
  const int64_t count = n * (n + 1) / 2, tail = pair_tail(order.size());
  return shift_from(count, tail, [&](int64_t k) {
    return select(k, order.front(), order.back(),
                  [&](double t) { return averages_up_to(order, t); });
  });
}

Shift unpaired_shift(std::span<const double> from, std::span<const double> to) {
  const std::vector<double> x = sorted(from), y = sorted(to);
  const auto count = static_cast<int64_t>(x.size() * y.size());
  const int64_t tail = sample_tail(x.size(), y.size());
  return shift_from(count, tail, [&](int64_t k) {
    return select(k, y.front() - x.back(), y.back() - x.front(),
                  [&](double t) { return differences_up_to(x, y, t); });
  });
}

double signed_rank_above(std::span<const double> differences, double bound) {
  sorted(differences);  // throws if a value cannot be ranked
  std::vector<double> rest;
  for (const double d : differences) {
    if (d != bound) rest.push_back(d - bound);
  }
  if (rest.empty()) return 1;
  std::sort(rest.begin(), rest.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  std::vector<double> sizes(rest.size());
  std::transform(rest.begin(), rest.end(), sizes.begin(), [](double d) { return std::abs(d); });
  const std::vector<int64_t> ranks = doubled_midranks(sizes);
  int64_t below = 0;  // evidence against H0 is a small sum of negative ranks
  for (size_t i = 0; i < rest.size(); ++i) below += rest[i] < 0 ? ranks[i] : 0;
  const bool ties = tie_term(sizes) > 0;
  if (rest.size() <= kExactPairs) {
    if (!ties) return signed_rank_distribution(rest.size())[static_cast<size_t>(below / 2)];
    return clamped(half_sum_distribution(ranks)[static_cast<size_t>(below)]);
  }
  const auto n = static_cast<double>(rest.size());
  const double center = n * (n + 1) / 4;
  const double variance = n * (n + 1) * (2 * n + 1) / 24 - tie_term(sizes) / 48;
  return normal_above((center - static_cast<double>(below) / 2 - 0.5) / std::sqrt(variance));
}

double rank_sum_above(std::span<const double> from, std::span<const double> to, double bound) {
  std::vector<double> x = sorted(from), y = sorted(to);
  for (double& value : y) value -= bound;
  double below = 0;  // pairs in favour of H0: y < x, and half of the ties
  for (size_t i = 0, less = 0, equal = 0; i < x.size(); ++i) {
    while (less < y.size() && y[less] < x[i]) ++less;
    while (equal < y.size() && y[equal] <= x[i]) ++equal;
    below += static_cast<double>(less) + 0.5 * static_cast<double>(equal - less);
  }
  std::vector<double> both;
  std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
  const double ties = tie_term(both);
  const auto m = static_cast<double>(x.size()), n = static_cast<double>(y.size()), all = m + n;
  if (ties == 0 && x.size() * y.size() <= kExactProducts) {
    return rank_sum_distribution(x.size(), y.size())[static_cast<size_t>(below)];
  }
  const double variance = m * n / 12 * (all + 1 - ties / (all * (all - 1)));
  if (variance <= 0) return 1;  // all values are equal
  return normal_above((m * n / 2 - below - 0.5) / std::sqrt(variance));
}

std::vector<double> holm(std::span<const double> p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double largest = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    largest = std::max(largest, static_cast<double>(p.size() - i) * p[order[i]]);
    adjusted[order[i]] = std::min(1.0, largest);
  }
  return adjusted;
}

int fewest_pairs(double alpha, int64_t tests) {
  return static_cast<int>(
      std::ceil(std::log2(static_cast<double>(std::max<int64_t>(1, tests)) / alpha)));
}

int fewest_samples(double alpha, int64_t tests) {
  double least_p = 1;  // 1 / (2n choose n)
  int n = 0;
  while (least_p > alpha / static_cast<double>(std::max<int64_t>(1, tests))) {
    ++n;
    least_p *= n / (2.0 * (2.0 * n - 1));
  }
  return n;
}

}  // namespace howmany::reports
