// SPDX-License-Identifier: Apache-2.0
#include "core/base/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace howmany {
namespace {

void require_sample(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("[statistics] the sample is empty");
  if (!std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); })) {
    throw std::invalid_argument("[statistics] a value of the sample is not finite");
  }
}

std::vector<double> sorted(std::span<const double> values) {
  require_sample(values);
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

double deviation(std::span<const double> values) {
  const double center = mean(values);
  double sum = 0;
  for (const double x : values) sum += (x - center) * (x - center);
  return values.size() < 2 ? 0 : std::sqrt(sum / static_cast<double>(values.size() - 1));
}

}  // namespace

double mean(std::span<const double> values) {
  require_sample(values);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(std::span<const double> values, double p) {
  if (!(p >= 0 && p <= 1)) throw std::invalid_argument("[quantile] p is outside 0 to 1");
  const std::vector<double> order = sorted(values);
  const double at = p * static_cast<double>(order.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, order.size() - 1);
  return std::lerp(order[below], order[above], at - std::floor(at));
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

double coefficient_of_variation(std::span<const double> values) {
  return deviation(values) / mean(values);
}

std::optional<Interval> median_interval(std::span<const double> values) {
  const std::vector<double> order = sorted(values);
  const size_t n = order.size();
  const boost::math::binomial_distribution<double> below(static_cast<double>(n), 0.5);
  const double tail = (1 - kConfidence) / 2;
  if (boost::math::cdf(below, 0) > tail) return std::nullopt;
  // The largest k with P(fewer than k values fall below the median) <= 2.5 %.
  size_t k = 1;
  while (boost::math::cdf(below, static_cast<double>(k)) <= tail) ++k;
  return Interval{order[k - 1], order[n - k]};
}

double student_t(int degrees) {
  if (degrees < 1) throw std::invalid_argument("[student_t] degrees of freedom below 1");
  return boost::math::quantile(boost::math::students_t(degrees), (1 + kConfidence) / 2);
}

std::optional<Interval> mean_interval(std::span<const double> values) {
  require_sample(values);
  if (values.size() < 2) return std::nullopt;
  const auto n = static_cast<double>(values.size());
  const double half =
      student_t(static_cast<int>(values.size()) - 1) * deviation(values) / std::sqrt(n);
  return Interval{mean(values) - half, mean(values) + half};
}

std::optional<Interval> repeat_interval(std::span<const double> values) {
  if (values.size() > 1 && std::ranges::count(values, values[0]) == std::ssize(values))
    return Interval{values[0], values[0]};  // exact, which logarithms are not
  std::vector<double> scaled(values.begin(), values.end());
  const bool positive = std::ranges::all_of(scaled, [](double x) { return x > 0; });
  if (positive)
    std::ranges::transform(scaled, scaled.begin(), [](double x) { return std::log(x); });
  const auto interval = mean_interval(scaled);
  if (!interval) return std::nullopt;
  // The difference of two means has sqrt(2) times the error of one mean.
  const double center = mean(scaled), half = std::sqrt(2.0) * (interval->high - center);
  if (!positive) return Interval{center - half, center + half};
  return Interval{std::exp(center - half), std::exp(center + half)};
}

Interval ratio_interval(const Interval& a, const Interval& b) {
  if (!(a.low > 0 && b.low > 0)) throw std::invalid_argument("[ratio] an interval is not positive");
  return {a.low / b.high, a.high / b.low};
}

}  // namespace howmany
