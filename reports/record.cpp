#include "reports/record.h"

#include <cmath>
#include <limits>

#include "reports/files.h"
#include "reports/json.h"

namespace howmany {
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

}  // namespace

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

}  // namespace howmany
