// SPDX-License-Identifier: Apache-2.0
#include "reports/html/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>

#include "core/base/schema/labels.h"
#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/bytes.h"
#include "core/base/text/format.h"
#include "reports/results/cell.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

using PlainJson = nlohmann::json;
constexpr size_t kMaxVarying = 8, kMaxMetrics = 6, kMaxGroupRows = 4096;

// The metrics that a suite's table shows. If a case has none of these, all its metrics are shown.
std::vector<std::string> preferred(const std::string& suite) {
  if (suite == "speedup") return {metric::kMedianS, metric::kSamplesPerS, "speedup", "efficiency"};
  if (suite == "backend") return {metric::kMedianS, metric::kPipelinedS, metric::kBusbwBytesPerS};
  if (suite == "transfer") return {metric::kMedianS, metric::kBytesPerS};
  if (suite == "loader") return {metric::kSamplesPerS, metric::kMedianS, metric::kCpuSPerSample};
  return {metric::kSamplesPerS,   "of_best",
          metric::kStallFraction, "wait_p95_s",
          metric::kFirstBatchS,   metric::kBytesPerWorker};
}

std::string title_of(const Measurement& m) {
  const std::string model = parameter_of(m, parameter::kModel);
  return m.suite == "speedup" && !model.empty() ? model : op_of(m);
}

void choose_metrics(HtmlGroup& group) {
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(group.rows,
                               [&](const Measurement* m) { return m->metrics.contains(name); });
  };
  for (const std::string& name : preferred(group.suite))
    if (has(name)) group.metrics.push_back(name);
  for (const Measurement* m : group.rows) {
    if (!group.metrics.empty()) return;
    for (const auto& [name, metric] : m->metrics)
      if (group.metrics.size() < kMaxMetrics) group.metrics.push_back(name);
  }
}

// Splits parameters into constant and varying ones. Skips those that the case or the first columns
// already show.
void split_parameters(HtmlGroup& group) {
  std::map<std::string, std::pair<std::string, size_t>> seen;  // first value, how many have it
  for (const Measurement* m : group.rows)
    for (const auto& [key, value] : m->parameters) {
      auto& [first, times] = seen.try_emplace(key, value, 0).first->second;
      times += first == value ? 1 : 0;
    }
  for (const auto& [key, value] : seen) {
    if (value.second == group.rows.size() && group.constants.size() < 2000)
      group.constants += fmt::format("{}{} {}", group.constants.empty() ? "" : ", ", label_of(key),
                                     parameter_text(key, value.first));
    else if (value.second != group.rows.size() && group.varying.size() < kMaxVarying)
      group.varying.push_back(key);
  }
}

// Puts the most important parameters first and keeps the order of the others.
void order_parameters(HtmlGroup& group) {
  const auto place = [](const std::string& key) {
    const auto first = {"devices", "mode", "backend", "bytes", "threads", "workers"};
    return std::ranges::find(first, key) - first.begin();
  };
  std::ranges::stable_sort(group.varying, {}, place);
}

bool has_number(const Measurement& m) { return !has_failed(m) && why_skipped(m).empty(); }

// Names the series of a measurement in a chart.
std::string series_of(const HtmlGroup& group, const Measurement& m, const std::string& x) {
  if (group.suite == "speedup")
    return parameter_of(m, parameter::kMode) + ", " + parameter_of(m, parameter::kBackend);
  std::string name = group.suite == "backend" ? backend_of(m) : "";
  for (const std::string& key : group.varying)
    if (const std::string value = parameter_of(m, key); key != x && !value.empty())
      name += fmt::format("{}{} {}", name.empty() ? "" : ", ", key, value);
  return name.empty() ? m.name : name;
}

ChartPoint chart_point(const Measurement& m, const std::string& x, const std::string& y) {
  const auto found = m.metrics.find(y);
  ChartPoint point{
      number_of(m, x.c_str()), std::numeric_limits<double>::quiet_NaN(), {}, {}, !m.flags.empty()};
  if (found == m.metrics.end() || parameter_of(m, x).empty() || !has_number(m)) return point;
  point.y = found->second.value;
  point.low = found->second.low;
  point.high = found->second.high;
  return point;
}

std::vector<ChartSeries> lines_of(const HtmlGroup& group, const std::string& x,
                                  const std::string& y) {
  std::vector<ChartSeries> lines;
  std::map<std::string, size_t> known;
  for (const Measurement* m : group.rows) {
    const ChartPoint point = chart_point(*m, x, y);
    if (!std::isfinite(point.y)) continue;
    const std::string name = series_of(group, *m, x);
    const auto [at, fresh] = known.try_emplace(name, lines.size());
    if (fresh) lines.push_back({name, {}, false});
    lines[at->second].points.push_back(point);
  }
  return lines;
}

// A curve needs two different x values.
bool is_curve(const std::vector<ChartSeries>& lines) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const ChartSeries& line : lines)
    for (const ChartPoint& p : line.points)
      least = std::min(least, p.x), most = std::max(most, p.x);
  return least < most;
}

void add_guide(Chart& chart, const std::string& name, double (*height)(double, double),
               double value) {
  double least = std::numeric_limits<double>::infinity(), most = 1;
  for (const ChartSeries& line : chart.series)
    for (const ChartPoint& p : line.points)
      least = std::min(least, p.x), most = std::max(most, p.x);
  chart.series.insert(chart.series.begin(), {name,
                                             {{least, height(least, value), {}, {}, false},
                                              {most, height(most, value), {}, {}, false}},
                                             true});
}

std::string count_text(double value) { return format_count(value); }
std::string ratio(double value) { return format_ratio(value, value == std::floor(value) ? 0 : 2); }

std::vector<Chart> speedup_chart(const HtmlGroup& group) {
  Chart chart{group.title + ": speedup",
              {"devices", ChartAxis::Scale::kLinear, count_text, true},
              {"speedup (ratio)", ChartAxis::Scale::kLinear, ratio, false},
              lines_of(group, "devices", "speedup")};
  if (!is_curve(chart.series)) return {};
  add_guide(
      chart, "ideal: as many times as devices", [](double x, double) { return x; }, 0);
  return {chart};
}

std::vector<Chart> bytes_chart(const HtmlGroup& group, const std::string& metric) {
  const bool time = metric.ends_with("_s") && !metric.ends_with("_per_s");
  Chart chart{group.title + (time ? ": time" : ": rate"),
              {"bytes", ChartAxis::Scale::kLog2, format_bytes, false},
              {time ? "median time" : "bytes/s", ChartAxis::Scale::kLog10,
               time ? format_seconds : format_rate, false},
              lines_of(group, "bytes", metric)};
  if (!is_curve(chart.series)) return {};
  return {chart};
}

std::vector<Chart> workers_chart(const HtmlGroup& group) {
  Chart chart{"loader workers",
              {"workers", ChartAxis::Scale::kLinear, count_text, true},
              {"samples/s", ChartAxis::Scale::kLinear, count_text, false},
              lines_of(group, "workers", metric::kSamplesPerS)};
  if (!is_curve(chart.series)) return {};
  for (ChartSeries& line : chart.series) line.name = "measured";
  if (group.demand > 0)
    add_guide(
        chart, "demand", [](double, double value) { return value; }, group.demand);
  return {chart};
}

// Returns the number, or nullopt if it is missing or negative.
std::optional<double> number_in(const PlainJson& row, const std::string& key) {
  const std::optional<double> value = json_number(row, key);
  return value && *value >= 0 ? value : std::nullopt;
}

Measurement workers_row(const PlainJson& row) {
  Measurement m{"workers", "curve", {}, {}, {}};
  if (const auto workers = number_in(row, "workers"))
    m.parameters[parameter::kWorkers] = fmt::format("{:.0f}", *workers);
  for (const auto& [name, unit] : {std::pair{metric::kSamplesPerS, "1/s"},
                                   {"of_best", "ratio"},
                                   {metric::kStallFraction, "share"},
                                   {"wait_p95_s", "s"},
                                   {metric::kFirstBatchS, "s"},
                                   {metric::kBytesPerWorker, "bytes"}}) {
    const auto value = number_in(row, name);
    if (!value) continue;
    m.metrics[name] = {*value,
                       unit,
                       number_in(row, std::string(name) + "_low"),
                       number_in(row, std::string(name) + "_high"),
                       0,
                       ""};
  }
  const auto rate = m.metrics.find(metric::kSamplesPerS);
  const double runs = std::fmin(number_in(row, "runs").value_or(0), 1e9);
  if (rate != m.metrics.end())
    rate->second.n = static_cast<int64_t>(runs), rate->second.basis = runs == 1 ? "run" : "runs";
  if (const auto failed = row.find("failed");
      failed != row.end() && failed->is_string() && *failed != "")
    m.flags.push_back("failed: " + failed->get<std::string>());
  return m;
}

double demand_of(const PlainJson& answer) {
  const PlainJson& workers = json_member(answer, "workers");
  return number_in(json_member(workers, "demand"), "samples_per_s_per_device").value_or(0) *
         number_in(workers, "devices").value_or(1);
}

}  // namespace

std::vector<Measurement> workers_rows(const PlainJson& answer) {
  std::vector<Measurement> rows;
  const PlainJson& table = json_member(json_member(answer, "workers"), "table");
  if (!table.is_array()) return rows;
  for (const PlainJson& row : table)
    if (row.is_object() && rows.size() < kMaxGroupRows) rows.push_back(workers_row(row));
  return rows;
}

std::vector<HtmlGroup> groups_of(const Summary& summary, const std::vector<Measurement>& workers,
                                 size_t most, size_t& left_out) {
  std::vector<HtmlGroup> groups;
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (const auto* all : {&workers, &summary.measurements})
    for (const Measurement& m : *all) {
      const auto key = std::pair(m.suite, title_of(m));
      if (groups.size() == most && !known.contains(key)) {
        ++left_out;
        continue;
      }
      const auto [at, fresh] = known.try_emplace(key, groups.size());
      if (fresh) groups.push_back({key.second, key.first, "", {}, {}, {}, 0});
      groups[at->second].rows.push_back(&m);
    }
  for (HtmlGroup& group : groups) {
    choose_metrics(group);
    split_parameters(group);
    order_parameters(group);
    if (group.suite == "workers") group.demand = demand_of(summary.answer);
  }
  return groups;
}

std::vector<Chart> charts_of(const HtmlGroup& group) {
  if (group.suite == "speedup") return speedup_chart(group);
  if (group.suite == "workers") return workers_chart(group);
  if (group.suite == "backend") return bytes_chart(group, metric::kMedianS);
  if (group.suite == "transfer") return bytes_chart(group, metric::kBytesPerS);
  return {};
}

std::string value_text(double value, const std::string& unit) {
  if (!std::isfinite(value)) return "-";
  if (unit == "s") return format_seconds(value);
  if (unit == "bytes/s" || unit == "B/s") return format_rate(value);
  if (unit == "bytes") return format_bytes(value);
  if (unit == "ratio") return format_ratio(value);
  if (unit == "share") return format_percent(value, 1);
  if (unit == "1/s") return format_count(value) + "/s";
  return unit.empty() ? format_count(value) : format_count(value) + " " + unit;
}

std::string parameter_text(const std::string& key, const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool plain = !value.empty() && *end == '\0' && std::isfinite(number) && number >= 0;
  return key == "bytes" && plain ? format_bytes(number) : value;
}

}  // namespace howmany::reports
