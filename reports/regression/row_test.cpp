// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/row_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace howmany::reports {
namespace {

constexpr int64_t kManySamples = 9999;

bool all_equal(const std::vector<double>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

bool all_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return x > 0; });
}

std::vector<double> logs(std::vector<double> values) {
  for (double& value : values) value = std::log(value);
  return values;
}

void compare_exactly(Row& row) {
  const double a = *row.base, b = *row.candidate;
  if (a != 0) row.change = b / a - 1;
  const bool worse = row.kind.better == Better::kLess ? b > a : b < a;
  row.verdict = a == b ? Verdict::kSame : worse ? Verdict::kSlower : Verdict::kFaster;
}

std::optional<Shift> test_ratios(Row& row, const Sides& sides, bool paired) {
  if (!all_positive(sides.base) || !all_positive(sides.candidate)) {
    row.why = "has values of 0 or less: no ratio";
    return std::nullopt;
  }
  const std::vector<double> a = logs(sides.base), b = logs(sides.candidate);
  const double sign = row.kind.better == Better::kLess ? 1 : -1;
  std::vector<double> worse = b, from = a;
  for (double& x : worse) x *= sign;
  for (double& x : from) x *= sign;
  const double bound = std::log1p(row.floor);
  Shift shift;
  if (paired) {
    for (size_t i = 0; i < worse.size(); ++i) worse[i] -= from[i];
    shift = paired_shift(worse);
    row.p_slower = signed_rank_above(worse, bound);
    for (double& x : worse) x = -x;
    row.p_faster = signed_rank_above(worse, bound);
  } else {
    shift = unpaired_shift(from, worse);
    row.p_slower = rank_sum_above(from, worse, bound);
    row.p_faster = rank_sum_above(worse, from, bound);
  }
  row.change = std::expm1(sign * shift.value);
  if (shift.interval) {
    Interval change = as_change(*shift.interval);
    if (sign < 0) change = {1 / (1 + change.high) - 1, 1 / (1 + change.low) - 1};
    row.interval = change;
  }
  return shift;
}

// Returns the number of samples that would settle the row at the current estimate. The interval's
// width shrinks with the square root of the number.
int64_t samples_to_settle(const Row& row, double shift, const Interval& interval, double same) {
  const double half = (interval.high - interval.low) / 2;
  const double edge = std::log1p(same), bound = std::log1p(row.floor);
  const double to_same = edge - std::abs(shift), to_other = std::abs(shift) - bound;
  const double distance = std::max({to_same, to_other, 1e-4});
  const auto now = static_cast<double>(std::min(row.base_samples, row.candidate_samples));
  const double times = half / distance;
  return static_cast<int64_t>(
      std::ceil(std::min<double>(kManySamples, now * std::max(1.1, times * times))));
}

// Returns "1 run a side" or "6 pairs".
std::string runs_text(int64_t count, bool paired) {
  return fmt::format("{} {}{}{}", count, paired ? "pair" : "run", count == 1 ? "" : "s",
                     paired ? "" : " a side");
}

// Returns the option for this number of samples: " (--pairs 40)".
std::string remedy(int64_t needed, const Doubt& doubt) {
  if (doubt.option.empty() || needed >= kManySamples) return "";
  return fmt::format(" ({}{})", doubt.option, needed);
}

}  // namespace

Interval as_change(const Interval& log_interval) {
  return {std::expm1(log_interval.low), std::expm1(log_interval.high)};
}

std::optional<Shift> test(Row& row, const Sides& sides, bool paired) {
  row.base_samples = static_cast<int64_t>(sides.base.size());
  row.candidate_samples = static_cast<int64_t>(sides.candidate.size());
  if (sides.base.empty() || sides.candidate.empty()) {
    row.why = "no block has both sides";
    return std::nullopt;
  }
  row.base = median(sides.base);
  row.candidate = median(sides.candidate);
  if (row.kind.exact && all_equal(sides.base) && all_equal(sides.candidate)) {
    compare_exactly(row);
    return std::nullopt;
  }
  if (row.kind.exact) {
    row.why = "differs from run to run of one program: tested, not compared exactly";
    row.kind.exact = false;
  }
  return test_ratios(row, sides, paired);
}

void explain_doubt(Row& row, const Shift& shift, const Doubt& doubt) {
  row.needed = doubt.least;
  const int64_t have = std::min(row.base_samples, row.candidate_samples);
  std::string why;
  if (shift.interval && have >= doubt.least) {
    row.needed =
        std::max(doubt.least, samples_to_settle(row, shift.value, *shift.interval, doubt.within));
    why = fmt::format(
        "{} are too few for this noise; {} {} would do{}", runs_text(have, doubt.paired),
        row.needed >= kManySamples ? "more than" : "about", row.needed, remedy(row.needed, doubt));
  } else {
    why = fmt::format("{} {} too few; {} would do{}", runs_text(have, doubt.paired),
                      have == 1 ? "is" : "are", row.needed, remedy(row.needed, doubt));
  }
  row.why += (row.why.empty() ? "" : "; ") + why;
}

}  // namespace howmany::reports
