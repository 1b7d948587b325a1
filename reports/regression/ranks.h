// Tests and estimates that ask nothing of the distribution: the signed rank of paired differences,
// the rank sum of two unpaired samples, each with the shift of Hodges and Lehmann and the interval
// that the test would not reject, and Holm's correction over a family. Values only; safe from any
// thread. std::invalid_argument for an empty sample or a value that is not finite.
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
  std::optional<Interval> interval;  // 95 %; nothing when there are too few samples for one
};

// Hollander and Wolfe, Nonparametric Statistical Methods, 3.2 and 4.2.
Shift paired_shift(std::span<const double> differences);
Shift unpaired_shift(std::span<const double> from, std::span<const double> to);

// One-sided p of H0 "the shift is `bound` or less". Exact up to 64 pairs, ties included; then the
// normal approximation. Differences equal to the bound are left out.
double signed_rank_above(std::span<const double> differences, double bound);
// The same for the rank sum: exact without ties up to 400 products of sizes, then the normal
// approximation with the corrections for ties and continuity.
double rank_sum_above(std::span<const double> from, std::span<const double> to, double bound);

// Holm's adjusted p-values, in the order given: reject where it is alpha or less, and the chance of
// even one false rejection is at most alpha, however the tests depend on each other.
std::vector<double> holm(std::span<const double> p);

// The fewest pairs, or samples a side, with which the exact test could reject at all among `tests`.
int fewest_pairs(double alpha, int64_t tests);
int fewest_samples(double alpha, int64_t tests);

}  // namespace howmany::reports
