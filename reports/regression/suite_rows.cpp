// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/suite_rows.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/text/json.h"
#include "reports/results/bench_file.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

void set(SuiteRow& row, const std::string& key, const std::string& value) {
  static constexpr std::array<std::pair<std::string_view, std::string SuiteRow::*>, 8> kTexts = {
      {{"name", &SuiteRow::name},
       {"run_name", &SuiteRow::run_name},
       {"run_type", &SuiteRow::run_type},
       {"aggregate_name", &SuiteRow::aggregate_name},
       {"aggregate_unit", &SuiteRow::aggregate_unit},
       {"time_unit", &SuiteRow::time_unit},
       {"error_message", &SuiteRow::error_message},
       {"skip_message", &SuiteRow::skip_message}}};
  for (const auto& [name, member] : kTexts) {
    if (key == name) row.*member = value;
  }
  if (key == "run_type") row.has_run_type = true;
  if (key == "skipped") row.skipped = !value.empty();  // 1.8: the kind of skip, by name
}

// Returns false if `key` is an index or a count, and `value` is not.
bool set(SuiteRow& row, const std::string& key, double value) {
  static constexpr std::array<std::pair<std::string_view, int64_t SuiteRow::*>, 4> kCounts = {
      {{"repetition_index", &SuiteRow::repetition_index},
       {"family_index", &SuiteRow::family_index},
       {"per_family_instance_index", &SuiteRow::instance_index},
       {"iterations", &SuiteRow::iterations}}};
  if (!std::isfinite(value)) return true;
  for (const auto& [name, member] : kCounts) {
    if (key != name) continue;
    if (value < 0 || value > 9e15 || value != std::floor(value)) return false;
    row.*member = static_cast<int64_t>(value);
    return true;
  }
  if (key == "real_time") {
    row.real_time = value;
  } else if (key == "cpu_time") {
    row.cpu_time = value;
  } else if (!is_google_number(key) || key == "allocs_per_iter" || key == "max_bytes_used") {
    row.counters.emplace_back(key, value);
  }
  return true;
}

SuiteRow row_from(const nlohmann::json& json, const std::string& place) {
  SuiteRow row;
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) set(row, key, value.get_ref<const std::string&>());
    if (value.is_boolean() && key == "error_occurred") row.error = value.get<bool>();
    if (value.is_boolean() && key == "skipped") row.skipped = value.get<bool>();
    if (value.is_number() && !set(row, key, value.get<double>())) {
      throw InputError(
          fmt::format("{}.{}: expected a count, found {}", place, key, value.get<double>()));
    }
  }
  if (row.name.empty() && row.run_name.empty()) {
    throw InputError(fmt::format("{}: \"name\" is missing", place));
  }
  return row;
}

}  // namespace

nlohmann::json each_row(std::string text, const std::string& source,
                        const std::function<void(const SuiteRow&)>& take) {
  const nlohmann::json json = parse_json(std::move(text), source);
  if (!json.is_object()) throw InputError(fmt::format("[{}] expected an object", source));
  const auto rows = json.find("benchmarks");
  if (rows == json.end() || !rows->is_array()) {
    throw InputError(fmt::format("[{}] \"benchmarks\" is missing", source));
  }
  for (size_t i = 0; i < rows->size(); ++i) {
    if ((*rows)[i].is_object())
      take(row_from((*rows)[i], fmt::format("[{}] benchmarks[{}]", source, i)));
  }
  const auto context = json.find("context");
  return context != json.end() && context->is_object() ? *context : nlohmann::json::object();
}

}  // namespace howmany::reports
