// SPDX-License-Identifier: Apache-2.0
// Statistics of samples. Intervals are two-sided with 95 % confidence.
//
// Independence. Repetitions in one process share its memory layout, temperature and neighbours, so
//   they are not independent. The independent unit is the round, which is a fresh process (see
//   efficiency.h).
// Failure. Every function throws std::invalid_argument if the sample is empty or a value is not
//   finite.
// Thread safety. The functions are pure.
#pragma once

#include <limits>
#include <optional>
#include <span>

namespace howmany {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr double kConfidence = 0.95;

struct Interval {
  double low = 0, high = 0;
};

double mean(std::span<const double> values);
double median(std::span<const double> values);
// Interpolates linearly between order statistics (type 7 of Hyndman and Fan, as in R and NumPy).
double quantile(std::span<const double> values, double p);
// Standard deviation divided by mean. Returns 0 for a single value.
double coefficient_of_variation(std::span<const double> values);

// Returns a confidence interval of the median from order statistics. It assumes no distribution and
// covers at least 95 %. Returns nullopt for fewer than 6 values, where even [min, max] covers less.
std::optional<Interval> median_interval(std::span<const double> values);

// Returns t such that a Student variable with `degrees` of freedom is within +-t with probability
// 95 %.
double student_t(int degrees);
// Returns a confidence interval of the mean from Student's t. Returns nullopt for fewer than 2
// values.
std::optional<Interval> mean_interval(std::span<const double> values);

// Returns a prediction interval for the mean of a new sample of the same size. Uses logarithms if
// all values are above 0. Returns nullopt for fewer than 2 values.
std::optional<Interval> repeat_interval(std::span<const double> values);

// Returns the interval of a / b from the intervals of a and b, which must be positive. It holds if
// both intervals do.
Interval ratio_interval(const Interval& a, const Interval& b);

}  // namespace howmany
