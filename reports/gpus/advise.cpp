// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/schema/reasons.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/gpus/answer.h"
#include "reports/results/device_kind.h"
#include "reports/results/efficiency.h"

namespace howmany::reports {
namespace {

int integer_parameter(const Measurement& m, const char* key) {
  const auto it = m.parameters.find(key);
  const int value = it == m.parameters.end() ? 0 : std::atoi(it->second.c_str());
  if (value < 1)
    throw InputError(fmt::format("[{}] parameter \"{}\" is missing or below 1", m.name, key));
  return value;
}

std::string needed_parameter(const Measurement& m, const char* key) {
  const auto it = m.parameters.find(key);
  if (it == m.parameters.end()) {
    throw InputError(fmt::format("[{}] parameter \"{}\" is missing", m.name, key));
  }
  return it->second;
}

Metric metric_or_nan(const Measurement& m, const char* key) {
  const auto it = m.metrics.find(key);
  return it == m.metrics.end() ? Metric{std::nan(""), "", {}, {}, 0, ""} : it->second;
}

Point point_of(const Measurement& m, double threshold) {
  Point point;
  point.devices = integer_parameter(m, parameter::kDevices);
  if (m.parameters.contains(parameter::kNodes))
    point.nodes = integer_parameter(m, parameter::kNodes);
  point.mode = needed_parameter(m, parameter::kMode);
  point.backend = needed_parameter(m, parameter::kBackend);
  point.step_seconds = metric_or_nan(m, metric::kMedianS).value;
  point.samples_per_s = metric_or_nan(m, metric::kSamplesPerS).value;
  point.data_wait_fraction = metric_or_nan(m, metric::kDataWaitFraction).value;
  point.wrapped_fraction = metric_or_nan(m, metric::kWrappedFraction).value;
  point.between_steps_fraction = metric_or_nan(m, metric::kBetweenStepsFraction).value;
  point.bubble = metric_or_nan(m, metric::kBubbleFraction).value;
  point.theoretical_bubble = metric_or_nan(m, metric::kTheoreticalBubbleFraction).value;
  point.exposed_seconds = metric_or_nan(m, metric::kExposedCommunicationS).value;
  point.ranks = metric_or_nan(m, metric::kRanks).value;
  point.straggler = metric_or_nan(m, metric::kStragglerRank).value;
  point.straggler_extra_seconds = metric_or_nan(m, metric::kStragglerExtraS).value;
  point.peak_bytes = metric_or_nan(m, metric::kPeakBytesPerDevice).value;
  point.busy_elsewhere = metric_or_nan(m, metric::kBusyElsewhereFraction).value;
  point.speedup = metric_or_nan(m, "speedup");
  point.efficiency = metric_or_nan(m, "efficiency");
  point.flags = m.flags;
  point.valid = std::isfinite(point.efficiency.value) && std::isfinite(point.speedup.value) &&
                !point.has_flag("failed") && !point.has_flag(mark::kOversubscribed);
  const Metric& e = point.efficiency;
  if (e.low && e.high) {
    point.rounds_to_decide = rounds_to_decide({e.value, Interval{*e.low, *e.high}, e.n, e.basis},
                                              least_efficiency(point.devices, threshold));
  }
  return point;
}

// Compares configurations with equal numbers of devices. A configuration that surely pays ranks
// first, then the faster one.
bool better(const Point& a, const Point& b, double threshold) {
  if (a.valid != b.valid) return a.valid;
  const bool a_pays = payoff_of(a, threshold) == Payoff::kPays;
  const bool b_pays = payoff_of(b, threshold) == Payoff::kPays;
  if (a_pays != b_pays) return a_pays;
  return a.speedup.value > b.speedup.value;
}

// On one device, the best point is the `single` baseline if there is one.
void mark_best(std::vector<Point>& points, double threshold) {
  std::map<int, Point*> best;
  for (Point& point : points) {
    Point*& current = best[point.devices];
    const bool baseline = point.devices == 1 && current != nullptr && current->mode == "single";
    if (point.valid && !baseline && (!current || better(point, *current, threshold))) {
      current = &point;
    }
  }
  for (const auto& [devices, point] : best) {
    if (point != nullptr) point->best = true;
  }
}

// Accepts the same range as the command line options.
double up_to(double most, const JsonNode& node) {
  const double value = node.number();
  if (value <= 0 || value > most)
    node.fail(fmt::format("expected a number above 0, {} at most", most));
  return value;
}

nlohmann::ordered_json row_json(const Point& p, const AdviceOptions& options) {
  nlohmann::ordered_json row = {{"devices", p.devices},
                                {"nodes", p.nodes},
                                {"mode", p.mode},
                                {"backend", p.backend},
                                {metric::kSamplesPerS, p.samples_per_s},
                                {"speedup", p.speedup.value},
                                {"efficiency", p.efficiency.value},
                                {"efficiency_low", nullptr},
                                {"efficiency_high", nullptr},
                                {"seconds_to_train", options.samples_to_train / p.samples_per_s},
                                {"best", p.best},
                                {"valid", p.valid}};
  const auto told = [&](const char* key, double value) {
    if (std::isfinite(value)) row[key] = value;
  };
  told(metric::kBubbleFraction, p.bubble);
  told(metric::kTheoreticalBubbleFraction, p.theoretical_bubble);
  told(metric::kExposedCommunicationS, p.exposed_seconds);
  told(metric::kStragglerRank, p.straggler);
  told(metric::kStragglerExtraS, p.straggler_extra_seconds);
  told(metric::kPeakBytesPerDevice, p.peak_bytes);
  row["device_hours_to_train"] = options.samples_to_train / p.samples_per_s * p.devices / 3600;
  if (p.efficiency.low) row["efficiency_low"] = *p.efficiency.low;
  if (p.efficiency.high) row["efficiency_high"] = *p.efficiency.high;
  return row;
}

nlohmann::ordered_json case_json(const Advice& advice, const AdviceOptions& options) {
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  for (const Point& point : advice.points) table.push_back(row_json(point, options));
  nlohmann::ordered_json recommended;
  if (advice.recommended) recommended = *advice.recommended;
  return {{"model", advice.model},     {"recommended", recommended},
          {"certain", advice.certain}, {"disturbed", advice.disturbed},
          {"mode", advice.mode},       {"backend", advice.backend},
          {"reason", advice.reason},   {"because", advice.because},
          {"notes", advice.notes},     {"table", table}};
}

}  // namespace

double break_even(int devices) { return devices > 1 ? 1.0 / devices : 0; }

double least_efficiency(int devices, double threshold) {
  return std::max(threshold, break_even(devices));
}

Payoff payoff_of(const Point& point, double threshold) {
  const Metric& e = point.efficiency;
  if (!e.low || !e.high) return Payoff::kUnsure;
  const double least = break_even(point.devices);
  if (*e.low >= threshold && *e.low > least) return Payoff::kPays;
  return *e.high < threshold || *e.high <= least ? Payoff::kDoesNotPay : Payoff::kUnsure;
}

bool Point::has_flag(std::string_view start) const {
  return std::any_of(flags.begin(), flags.end(),
                     [&](const std::string& flag) { return flag.starts_with(start); });
}

std::vector<Advice> advise(const std::vector<Measurement>& measurements,
                           const AdviceOptions& options) {
  std::vector<Advice> all;
  std::map<std::string, size_t> places;        // of each model in `all`
  std::map<std::string, std::string> devices;  // the device lists of each model
  for (const Measurement& m : measurements) {
    if (m.suite != "speedup") continue;
    const std::string model = needed_parameter(m, parameter::kModel);
    const auto [place, fresh] = places.try_emplace(model, all.size());
    if (fresh) all.emplace_back().model = model;
    if (m.parameters.contains(parameter::kScript)) all[place->second].script = true;
    devices[model] += needed_parameter(m, "device_list") + ",";
    all[place->second].points.push_back(point_of(m, options.min_efficiency));
  }
  for (Advice& advice : all) {
    std::stable_sort(advice.points.begin(), advice.points.end(),
                     [](const Point& a, const Point& b) { return a.devices < b.devices; });
    mark_best(advice.points, options.min_efficiency);
    write_answer(options, std::string(noun_of(device_kind(devices[advice.model]))), advice);
  }
  return all;
}

nlohmann::ordered_json to_json(const std::vector<Advice>& advice, const AdviceOptions& options) {
  nlohmann::ordered_json cases = nlohmann::ordered_json::array();
  for (const Advice& one : advice) cases.push_back(case_json(one, options));
  if (cases.empty()) return nlohmann::ordered_json::object();
  nlohmann::ordered_json gpus = {{"recommended", cases[0]["recommended"]},
                                 {"reason", cases[0]["reason"]},
                                 {"because", cases[0]["because"]},
                                 {"certain", std::ranges::all_of(advice, &Advice::certain)},
                                 {"disturbed", std::ranges::any_of(advice, &Advice::disturbed)},
                                 {"min_efficiency", options.min_efficiency},
                                 {"samples_to_train", options.samples_to_train},
                                 {"table", cases[0]["table"]},
                                 {"cases", cases}};
  for (const Advice& one : advice) {
    if (one.recommended == advice[0].recommended) continue;
    gpus["recommended"] = nullptr;
    gpus["reason"] = reason::kDependsOnModel;
    gpus["because"] = "The answer depends on the model; see the cases.";
  }
  return gpus;
}

AdviceOptions options_from_answer(const nlohmann::json& answer, const std::string& source) {
  AdviceOptions options;
  const JsonNode root(answer, source);
  const auto gpus = root.find("gpus");
  if (!gpus) return options;
  options.min_efficiency = up_to(2, gpus->at("min_efficiency"));
  options.samples_to_train = up_to(kMostCount, gpus->at("samples_to_train"));
  return options;
}

}  // namespace howmany::reports
