// SPDX-License-Identifier: Apache-2.0
#include "reports/forms/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/schema/marks.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "reports/predict/forecast_json.h"

namespace howmany::reports {
namespace {

constexpr int kMaxNodes = 100'000, kMaxDevices = 1'000'000;
constexpr double kSameWork = 1.02;  // largest ratio of samples of runs that count as equal

int whole_parameter(const Measurement& m, const char* key, int most) {
  const std::string text = parameter_of(m, key);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most)
    throw InputError(fmt::format("[{}] parameter \"{}\": expected a whole number from 1 to {}",
                                 m.name, key, most));
  return value;
}

Figure figure_of(const Measurement& m, const char* key) {
  const auto found = m.metrics.find(key);
  if (found == m.metrics.end() || !(found->second.value >= 0)) return {};
  return {found->second.value, found->second.low, found->second.high};
}

bool is_usable(const Measurement& m) {
  const bool oversubscribed =
      std::ranges::find(m.flags, std::string(mark::kOversubscribed)) != m.flags.end();
  return m.suite == "speedup" && !has_failed(m) && !oversubscribed &&
         value_of(m, "efficiency") > 0 && value_of(m, metric::kSamplesPerS) > 0;
}

ScalingRow row_of(const Measurement& m) {
  ScalingRow row;
  if (m.parameters.contains(parameter::kNodes))
    row.nodes = whole_parameter(m, parameter::kNodes, kMaxNodes);
  row.devices = whole_parameter(m, parameter::kDevices, kMaxDevices);
  const std::string mode = parameter_of(m, parameter::kMode);
  row.configuration =
      mode == "single" ? mode : mode + " over " + parameter_of(m, parameter::kBackend);
  row.samples_per_s = figure_of(m, metric::kSamplesPerS);
  row.efficiency = figure_of(m, "efficiency");
  row.step_s = figure_of(m, metric::kMedianS);
  row.wall_s = figure_of(m, metric::kWallS);
  row.start_s = figure_of(m, metric::kStartS);
  row.gpu_utilisation = figure_of(m, metric::kGpuUtilisationFraction).value;
  row.memory_bytes = figure_of(m, metric::kGpuMemoryBytes).value;
  if (std::isnan(row.memory_bytes))
    row.memory_bytes = figure_of(m, metric::kPeakBytesPerDevice).value;
  row.mfu = figure_of(m, metric::kMfuFraction).value;
  return row;
}

bool is_baseline(const ScalingRow& row) {
  return row.devices == 1 && row.configuration == "single";
}

// More devices first, then the baseline, then the faster one.
bool replaces(const ScalingRow& row, const ScalingRow& known) {
  if (row.devices != known.devices) return row.devices > known.devices;
  if (is_baseline(row) != is_baseline(known)) return is_baseline(row);
  return row.samples_per_s.value > known.samples_per_s.value;
}

// Keeps one row per count.
std::vector<ScalingRow> chosen(const std::vector<ScalingRow>& all, bool over_nodes) {
  std::map<int, ScalingRow> by_count;
  for (const ScalingRow& row : all) {
    const auto [at, fresh] = by_count.try_emplace(over_nodes ? row.nodes : row.devices, row);
    if (!fresh && replaces(row, at->second)) at->second = row;
  }
  std::vector<ScalingRow> rows;
  for (const auto& [count, row] : by_count) rows.push_back(row);
  return rows;
}

// Returns how far the logarithm of each end of an interval is from that of the value.
std::optional<std::pair<double, double>> widths(const Figure& f) {
  if (!f.low || !f.high || !(*f.low > 0) || !(*f.high > 0) || !(f.value > 0)) return std::nullopt;
  return std::pair(std::log(f.value / *f.low), std::log(*f.high / f.value));
}

// Returns the ratio of independent figures, without an interval unless both have one.
Figure ratio_of(const Figure& above, const Figure& below, double factor) {
  Figure ratio{above.value / below.value * factor};
  const auto a = widths(above), b = widths(below);
  if (!a || !b) return ratio;
  ratio.low = ratio.value * std::exp(-std::hypot(a->first, b->second));
  ratio.high = ratio.value * std::exp(std::hypot(a->second, b->first));
  return ratio;
}

Figure scaled(const Figure& f, double factor) {
  Figure scaled{f.value * factor};
  if (f.low && f.high) scaled.low = *f.low * factor, scaled.high = *f.high * factor;
  return scaled;
}

// The samples that the timed steps of a whole run trained.
double samples_of(const ScalingRow& row) {
  return row.samples_per_s.value * (row.wall_s.value - row.start_s.value);
}

// Total times are comparable if the runs trained the same samples, or known numbers of them.
void choose_time(ScalingRows& rows, bool strong) {
  double least = INFINITY, most = 0;
  for (const ScalingRow& row : rows.measured) {
    if (!(row.wall_s.value > 0)) return;
    const double samples = samples_of(row);
    least = std::isnan(samples) ? NAN : std::min(least, samples);
    most = std::max(most, samples);
  }
  const bool known = least > 0 && std::isfinite(least);
  rows.per_sample = known && most > kSameWork * least;
  rows.by_total_time = known || strong;
}

void set_relative(ScalingRows& rows) {
  ScalingRow base = rows.measured.front();
  // Efficiencies are relative to it: it has no error of its own.
  if (base.efficiency.value == 1) base.efficiency = {1, 1, 1};
  for (ScalingRow& row : rows.measured) {
    const double more = static_cast<double>(row.devices) / base.devices;
    const double work = rows.per_sample ? samples_of(row) / samples_of(base) : 1;
    row.efficiency = rows.by_total_time ? ratio_of(base.wall_s, row.wall_s, work / more)
                                        : ratio_of(row.efficiency, base.efficiency, 1);
    row.speedup = scaled(row.efficiency, more);
  }
  rows.measured.front().efficiency = rows.measured.front().speedup = {1};
}

Figure figure_of(const Range& range) { return {range.value, range.low, range.high}; }

// A rate of the forecast for the baseline, since its rates may be batches.
double base_rate(const Forecast& f, const ScalingRow& base) {
  for (const RateAt& known : f.measured)
    if (known.devices == base.devices) return known.per_s;
  return base.samples_per_s.value;
}

void add_beyond(const Summary& summary, const std::string& model, ScalingRows& rows) {
  const auto beyond = summary.answer.find("beyond");
  if (beyond == summary.answer.end() || beyond->contains("refused")) return;
  const Forecast f = forecast_from_json(*beyond, "summary.json");
  if (!f.what.empty() && f.what != model) return;
  const ScalingRow base = rows.measured.front();
  rows.sentences = f.sentences;
  rows.of_batches = f.of_batches;
  const ScalingRow& last = rows.measured.back();
  rows.devices_per_node =
      rows.over_nodes ? std::max(1, last.devices / last.nodes) : f.options.devices_per_node;
  for (const ForecastRow& one : f.rows) {
    if (one.is_measured() || !one.refused.empty()) continue;
    ScalingRow row;
    row.evidence = one.evidence;
    row.devices = one.devices;
    row.nodes = (one.devices + rows.devices_per_node - 1) / rows.devices_per_node;
    row.configuration = one.mode;
    row.samples_per_s = figure_of(one.per_s);
    row.speedup = scaled(row.samples_per_s, 1 / base_rate(f, base));
    row.efficiency = scaled(row.speedup, static_cast<double>(base.devices) / row.devices);
    rows.beyond.push_back(row);
  }
}

}  // namespace

ScalingRows scaling_rows(const Summary& summary, const std::string& model, bool total_time) {
  std::vector<ScalingRow> all;
  ScalingRows rows;
  bool strong = false;
  for (const Measurement& m : summary.measurements) {
    if (!is_usable(m) || parameter_of(m, parameter::kModel) != model) continue;
    all.push_back(row_of(m));
    rows.over_nodes = rows.over_nodes || all.back().nodes > 1;
    strong = strong || parameter_of(m, parameter::kScaling) == "strong";
  }
  if (all.empty()) throw InputError(fmt::format("no proposal: no valid measurement of {}", model));
  rows.measured = chosen(all, rows.over_nodes);
  if (total_time) choose_time(rows, strong);
  set_relative(rows);
  add_beyond(summary, model, rows);
  return rows;
}

int count_of(const ScalingRows& rows, const ScalingRow& row) {
  return rows.over_nodes ? row.nodes : row.devices;
}

}  // namespace howmany::reports
