// SPDX-License-Identifier: Apache-2.0
// Nonparametric tests and estimates. Values only; safe from any thread. Throw std::invalid_argument
// if a sample is empty or a value is not finite.
//
// - signed rank test of paired differences
// - rank sum test of two unpaired samples
// - Hodges-Lehmann shift, with the interval that the test would not reject
// - Holm's correction over a family
//
//   Shift shift = paired_shift(log_ratios);                        // median of pairwise averages
//   double p = signed_rank_above(log_ratios, std::log(1.01));      // H0: the shift is 1 % or less
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/statistics.h"

namespace howmany::reports {

struct Shift {
  double value = 0;
  std::optional<Interval> interval;  // 95 %; absent with too few samples
};

// Hollander and Wolfe, Nonparametric Statistical Methods, 3.2 and 4.2.
Shift paired_shift(std::span<const double> differences);
Shift unpaired_shift(std::span<const double> from, std::span<const double> to);

// Returns the one-sided p-value of H0 "the shift is `bound` or less". Exact up to 64 pairs,
// including ties; then the normal approximation. Omits differences equal to the bound.
double signed_rank_above(std::span<const double> differences, double bound);
// The same for the rank sum. Exact without ties if the product of the sizes is at most 400; else
// the normal approximation, corrected for ties and continuity.
double rank_sum_above(std::span<const double> from, std::span<const double> to, double bound);

// Returns Holm's adjusted p-values in the given order. If those of at most alpha are rejected, the
// family-wise error rate is at most alpha, for any dependence of the tests.
std::vector<double> holm(std::span<const double> p);

// Return the fewest pairs, or samples per side, with which the exact test can reject among `tests`
// tests.
int fewest_pairs(double alpha, int64_t tests);
int fewest_samples(double alpha, int64_t tests);

}  // namespace howmany::reports
