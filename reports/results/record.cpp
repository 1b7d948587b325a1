// SPDX-License-Identifier: Apache-2.0
#include "reports/results/record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <set>

#include "core/base/text/csv.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"

namespace howmany::reports {
namespace {

constexpr const char* kSummarySchema = "howmany.summary/1";

nlohmann::ordered_json to_json(const Metric& metric) {
  return {{"value", number_or_null(metric.value)},
          {"unit", metric.unit},
          {"low", number_or_null(metric.low)},
          {"high", number_or_null(metric.high)},
          {"n", metric.n},
          {"basis", metric.basis}};
}

nlohmann::ordered_json to_json(const Measurement& measurement) {
  nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
  for (const auto& [name, metric] : measurement.metrics) metrics[name] = to_json(metric);
  return {{"suite", measurement.suite},
          {"case", measurement.name},
          {"parameters", measurement.parameters},
          {"metrics", metrics},
          {"flags", measurement.flags}};
}

std::optional<double> optional_number(const JsonNode& node, const char* key) {
  const auto found = node.find(key);
  return found ? std::optional(found->number()) : std::nullopt;
}

bool is_never_negative(const std::string& name, const std::string& unit) {
  return unit == "s" || unit.ends_with("/s") || name == "speedup" || name == "efficiency";
}

Metric metric_from_json(const std::string& name, const JsonNode& node) {
  Metric metric;
  node.at("value");
  metric.value = optional_number(node, "value").value_or(std::numeric_limits<double>::quiet_NaN());
  metric.unit = node.at("unit").string();
  if (metric.value < 0 && is_never_negative(name, metric.unit))
    node.at("value").fail("is negative");
  metric.low = optional_number(node, "low");
  metric.high = optional_number(node, "high");
  if (metric.low && metric.high && *metric.low > *metric.high) node.fail("low is above high");
  metric.n = node.at("n").integer_between(0, std::numeric_limits<int64_t>::max());
  if (const auto basis = node.find("basis")) metric.basis = basis->string();
  return metric;
}

Measurement measurement_from_json(const JsonNode& node) {
  Measurement measurement;
  measurement.suite = node.at("suite").string();
  measurement.name = node.at("case").string();
  for (const auto& [key, value] : node.at("parameters").members()) {
    measurement.parameters[key] = value.string();
  }
  for (const auto& [key, value] : node.at("metrics").members()) {
    measurement.metrics[key] = metric_from_json(key, value);
  }
  measurement.flags = node.at("flags").strings();
  return measurement;
}

std::set<std::string> parameter_names(const Summary& summary) {
  std::set<std::string> names;
  for (const Measurement& measurement : summary.measurements) {
    for (const auto& [name, value] : measurement.parameters) names.insert(name);
  }
  return names;
}

void add_measurement(std::string& csv, const Measurement& measurement,
                     const std::set<std::string>& parameters) {
  std::vector<std::string> common = {csv_text(measurement.suite), csv_text(measurement.name)};
  for (const std::string& name : parameters) {
    const auto it = measurement.parameters.find(name);
    common.push_back(it == measurement.parameters.end() ? "" : csv_text(it->second));
  }
  const std::string flags = csv_text(fmt::format("{}", fmt::join(measurement.flags, "; ")));
  auto add = [&](std::vector<std::string> cells) {
    cells.insert(cells.begin(), common.begin(), common.end());
    cells.push_back(flags);
    add_csv_row(csv, cells);
  };
  for (const auto& [name, metric] : measurement.metrics) {
    add({csv_text(name), csv_number(metric.value), csv_text(metric.unit), csv_number(metric.low),
         csv_number(metric.high), std::to_string(metric.n), csv_text(metric.basis)});
  }
  // A measurement without metrics still gets a row.
  if (measurement.metrics.empty()) add({"", "", "", "", "", "0", ""});
}

}  // namespace

std::string parameter_of(const Measurement& m, const std::string& key) {
  const auto it = m.parameters.find(key);
  return it == m.parameters.end() ? "" : it->second;
}

bool has_failed(const Measurement& m) {
  return std::any_of(m.flags.begin(), m.flags.end(),
                     [](const std::string& flag) { return flag.starts_with("failed: "); });
}

std::string why_skipped(const Measurement& m) {
  for (const std::string& flag : m.flags)
    if (flag.starts_with("skipped: ")) return flag.substr(9);
  return "";
}

double value_of(const Measurement& m, const std::string& metric) {
  const auto it = m.metrics.find(metric);
  return it == m.metrics.end() ? std::numeric_limits<double>::quiet_NaN() : it->second.value;
}

nlohmann::ordered_json to_json(const Summary& summary) {
  nlohmann::ordered_json measurements = nlohmann::ordered_json::array();
  for (const Measurement& measurement : summary.measurements) {
    measurements.push_back(to_json(measurement));
  }
  return {{"schema", kSummarySchema},
          {"context", summary.context},
          {"answer", summary.answer},
          {"measurements", measurements}};
}

Summary summary_from_json(const nlohmann::json& json, const std::string& source) {
  const JsonNode root(json, source);
  const std::string schema = root.at("schema").string();
  if (schema != kSummarySchema) {
    root.fail("schema is \"" + schema + "\", this program reads " + kSummarySchema);
  }
  Summary summary;
  root.at("context").members();
  root.at("answer").members();
  summary.context = json["context"];
  summary.answer = json["answer"];
  for (const JsonNode& node : root.at("measurements").items()) {
    summary.measurements.push_back(measurement_from_json(node));
  }
  return summary;
}

Summary read_summary(const std::string& path) {
  return summary_from_json(parse_json(read_text(path), path), path);
}

std::string to_csv(const Summary& summary) {
  const std::set<std::string> parameters = parameter_names(summary);
  std::vector<std::string> header = {"suite", "case"};
  for (const std::string& name : parameters) header.push_back(csv_text(name));
  for (const char* name : {"metric", "value", "unit", "low", "high", "n", "basis", "flags"}) {
    header.emplace_back(name);
  }
  std::string csv;
  add_csv_row(csv, header);
  for (const Measurement& measurement : summary.measurements) {
    add_measurement(csv, measurement, parameters);
  }
  return csv;
}

}  // namespace howmany::reports
