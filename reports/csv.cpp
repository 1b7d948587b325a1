#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "reports/csv.h"
#include "reports/record.h"

namespace howmany {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
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
  std::vector<std::string> common = {measurement.suite, measurement.name};
  for (const std::string& name : parameters) {
    const auto it = measurement.parameters.find(name);
    common.push_back(it == measurement.parameters.end() ? "" : it->second);
  }
  const std::string flags = fmt::format("{}", fmt::join(measurement.flags, "; "));
  auto add = [&](std::vector<std::string> cells) {
    cells.insert(cells.begin(), common.begin(), common.end());
    cells.push_back(flags);
    add_csv_row(csv, cells);
  };
  for (const auto& [name, metric] : measurement.metrics) {
    add({name, csv_number(metric.value), metric.unit, csv_number(metric.low),
         csv_number(metric.high), std::to_string(metric.n), metric.basis});
  }
  // A measurement that failed before its first number still has its row.
  if (measurement.metrics.empty()) add({"", "", "", "", "", "0", ""});
}

}  // namespace

std::string csv_number(const std::optional<double>& value) {
  // "{}" prints the shortest digits that read back as the same double.
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

void add_csv_row(std::string& csv, const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) csv += ',';
    csv += quoted(cells[i]);
  }
  csv += "\r\n";
}

std::string to_csv(const Summary& summary) {
  const std::set<std::string> parameters = parameter_names(summary);
  std::vector<std::string> header = {"suite", "case"};
  header.insert(header.end(), parameters.begin(), parameters.end());
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

}  // namespace howmany
