// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/step_forecast.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "reports/predict/decide.h"

namespace howmany::reports {
namespace {

double per_sample(const StepOn& step, double Range::*end) {
  return step.seconds.*end / step.samples;
}

// The loss of efficiency by exchanges, and by shares that differ from that of one GPU.
double loss_of(const UnmeasuredSteps& s, int devices, double Range::*end) {
  return std::log(per_sample(s.steps.at(devices), end) / per_sample(s.steps.at(1), end));
}

ForecastRow row_of_one(const UnmeasuredSteps& s) {
  ForecastRow row;
  row.devices = 1;
  row.per_s = s.per_s;
  row.efficiency = {1, 1, 1};
  row.refused = s.steps.at(1).why;
  return row;
}

ForecastRow step_row(const UnmeasuredSteps& s, int devices, int devices_per_node) {
  const StepOn& step = s.steps.at(devices);
  ForecastRow row;
  row.devices = devices;
  row.refused = step.why.empty() ? s.cluster.refusal(devices) : step.why;
  if (!row.refused.empty()) return row;
  const double value = loss_of(s, devices, &Range::value);
  const auto [low, high] =
      std::minmax({value, loss_of(s, devices, &Range::low), loss_of(s, devices, &Range::high)});
  row = {predict_computed(s.per_s.value, devices, devices_per_node, value, step.micro_batches),
         Evidence::kPredicted};
  if (!row.refused.empty()) return row;
  row.efficiency = product(row.efficiency, {1, std::exp(value - high), std::exp(value - low)}, 1);
  row.per_s = product(s.per_s, row.efficiency, devices);
  return row;
}

}  // namespace

Range product(const Range& a, const Range& b, double times) {
  const auto away = [](double a_end, double a_value, double b_end, double b_value) {
    return std::exp(std::hypot(std::log(a_end / a_value), std::log(b_end / b_value)));
  };
  const double value = a.value * b.value * times;
  return {value, value / away(a.low, a.value, b.low, b.value),
          value * away(a.high, a.value, b.high, b.value)};
}

Forecast forecast(const UnmeasuredSteps& s, const ForecastOptions& options) {
  check(options, s.of_batches);
  Forecast f;
  f.what = s.what;
  f.strong = s.strong;
  f.of_batches = s.of_batches;
  f.cluster = s.cluster.name;
  f.options = options;
  f.basis = s.basis;
  f.next = s.next;
  f.counted = s.counted;
  f.rows.push_back(row_of_one(s));
  for (const auto& [devices, step] : s.steps)
    if (devices > 1) f.rows.push_back(step_row(s, devices, options.devices_per_node));
  decide(f);
  return f;
}

}  // namespace howmany::reports
