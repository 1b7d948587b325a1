// The statistics everything here is built of. Intervals are two-sided at 95 %. Repetitions inside
// one process share its memory layout, its heat and its neighbours, so they are not independent:
// the honest unit is the round, a fresh process (see efficiency.h). Values only; every function
// throws std::invalid_argument for an empty sample or a non-finite value.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace howmany {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr double kConfidence = 0.95;

struct Interval {
  double low = 0, high = 0;
};

double mean(std::span<const double> values);
double median(std::span<const double> values);
// Linear interpolation between order statistics (type 7 of Hyndman and Fan, as in R and NumPy).
double quantile(std::span<const double> values, double p);
// Standard deviation over mean; 0 for a single value.
double coefficient_of_variation(std::span<const double> values);

// Of the median, from order statistics: no assumption about the distribution, coverage at least 95
// %. Nothing below 6 values, where even [min, max] covers less.
std::optional<Interval> median_interval(std::span<const double> values);

// t such that a Student variable with `degrees` of freedom stays within +-t 95 % of the time.
double student_t(int degrees);
// Of the mean, Student's t. Nothing below 2 values.
std::optional<Interval> mean_interval(std::span<const double> values);

// Where the mean of as many new values is to be expected (a prediction interval), of logarithms
// when all values are above 0. Nothing below 2 values.
std::optional<Interval> repeat_interval(std::span<const double> values);

// Of a / b from the intervals of a and b, both positive: what holds when both do.
Interval ratio_interval(const Interval& a, const Interval& b);

}  // namespace howmany
