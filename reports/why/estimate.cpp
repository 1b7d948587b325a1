// SPDX-License-Identifier: Apache-2.0
#include "reports/why/estimate.h"

#include <algorithm>
#include <cmath>

#include "core/base/statistics.h"

namespace howmany::reports {
namespace {

constexpr double kOfMedian = 1.2533, kQuartiles = 1.349;  // of a normal distribution
constexpr size_t kFewSteps = 3;                           // do not show how much they vary

// A step that accumulates gradients has several backward passes.
bool within_backward(const DetailStep& step, double at) {
  return std::ranges::any_of(step.spans, [&](const Span& span) {
    return span.what == "backward" && at >= span.at && at < span.at + span.seconds;
  });
}

// Returns the relative standard deviation of w of the recorded steps.
double spread_of(const StepEvidence& e) {
  std::vector<double> means;
  for (const DetailSteps* step : steps_of(e, Mode::kSynced))
    means.push_back(mean(of_ranks(*step, useful)));
  if (means.size() < kFewSteps || !(median(means) > 0)) return 0;
  return (quantile(means, 0.75) - quantile(means, 0.25)) / kQuartiles / median(means);
}

double median_of_least(const StepEvidence& e, Mode mode, OfRank value) {
  std::vector<double> least;
  for (const DetailSteps* step : steps_of(e, mode))
    least.push_back(std::ranges::min(of_ranks(*step, value)));
  return median_of(least).value;
}

}  // namespace

Measured operator+(Measured a, Measured b) {
  return {a.value + b.value, std::hypot(a.error, b.error)};
}
Measured operator-(Measured a, Measured b) {
  return {a.value - b.value, std::hypot(a.error, b.error)};
}
Measured operator*(double factor, Measured a) { return {factor * a.value, factor * a.error}; }

Measured median_of(const std::vector<double>& values) {
  if (values.empty()) return {};
  const double spread = (quantile(values, 0.75) - quantile(values, 0.25)) / kQuartiles;
  return {median(values), kOfMedian * spread / std::sqrt(static_cast<double>(values.size()))};
}

Measured mean_over_rounds(const std::vector<Measured>& rounds) {
  std::vector<double> values;
  double squares = 0;
  for (const Measured& one : rounds) {
    values.push_back(one.value);
    squares += one.error * one.error;
  }
  const auto n = static_cast<double>(values.size());
  const double center = mean(values);
  if (values.size() < 2) return {center, std::sqrt(squares)};
  double deviations = 0;
  for (const double value : values) deviations += (value - center) * (value - center);
  return {center, std::sqrt(deviations / (n - 1) / n)};
}

double useful(const DetailStep& step) { return step.train - step.blocked; }
double blocked(const DetailStep& step) { return step.blocked; }
double train(const DetailStep& step) { return step.train; }

std::vector<double> of_ranks(const DetailSteps& step, OfRank value) {
  std::vector<double> values;
  for (const DetailStep& rank : step.ranks) values.push_back(value(rank));
  return values;
}

std::optional<Measured> in_mode(const StepEvidence& e, Mode mode, OfRank value) {
  std::vector<double> means;
  for (const DetailSteps* step : steps_of(e, mode)) means.push_back(mean(of_ranks(*step, value)));
  if (means.empty()) return std::nullopt;
  Measured all = median_of(means);
  if (means.size() < kFewSteps) all.error = std::max(all.error, spread_of(e) * all.value);
  return all;
}

size_t least_blocked(const DetailSteps& step) {
  const std::vector<double> waits = of_ranks(step, blocked);
  return static_cast<size_t>(std::ranges::min_element(waits) - waits.begin());
}

double blocked_outside(const DetailStep& step) {
  double sum = 0;
  for (const Span& span : step.spans)
    if (span.what == "blocked" && !within_backward(step, span.at)) sum += span.seconds;
  return std::min(sum, step.blocked);
}

double end_of_noop(const StepEvidence& e) {
  return std::max(0.0, median_of_least(e, Mode::kNoop, blocked) -
                           median_of_least(e, Mode::kSynced, blocked_outside));
}

}  // namespace howmany::reports
