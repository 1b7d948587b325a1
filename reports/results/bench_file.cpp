// SPDX-License-Identifier: Apache-2.0
#include "reports/results/bench_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/base/schema/samples.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

constexpr int64_t kMaxSamplesBytes = int64_t{256} << 20;

// Numbers that Google Benchmark writes itself.
constexpr std::array<std::string_view, 10> kOwnNumbers = {
    "family_index",    "per_family_instance_index",
    "repetitions",     "repetition_index",
    "threads",         "iterations",
    "real_time",       "cpu_time",
    "allocs_per_iter", "max_bytes_used"};

bool is_counter(const std::string& key, const nlohmann::json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && !is_google_number(key);
}

double seconds_of_unit(const JsonNode& row) {
  const auto unit = row.find("time_unit");
  const std::string name = unit ? unit->string() : "ns";
  const auto seconds = seconds_per_unit(name);
  if (!seconds) unit->fail("unknown unit \"" + name + "\"");
  return *seconds;
}

int index(const JsonNode& row, const char* key) {
  const auto found = row.find(key);
  constexpr int64_t kMax = std::numeric_limits<int>::max();
  return found ? static_cast<int>(found->integer_between(0, kMax)) : 0;
}

bool is_aggregate(const JsonNode& row) {
  const auto type = row.find("run_type");
  return (type && type->string() != "iteration") || row.find("aggregate_name") ||
         row.find("big_o") || row.find("rms");
}

std::string error_of(const JsonNode& row) {
  const auto occurred = row.find("error_occurred"), message = row.find("error_message");
  if (!occurred || !occurred->boolean()) return "";
  return message && !message->string().empty() ? message->string() : "error without a message";
}

BenchRow row_from(const JsonNode& node) {
  BenchRow row;
  const auto run_name = node.find("run_name");
  row.name = run_name ? run_name->string() : node.at("name").string();
  row.error = error_of(node);
  row.repetition = index(node, "repetition_index");
  row.family = index(node, "family_index");
  row.json = node.value();
  if (row.error.empty()) row.seconds = node.at("real_time").number() * seconds_of_unit(node);
  if (row.seconds < 0) node.at("real_time").fail("is negative");
  for (const auto& [key, value] : node.value().items()) {
    if (is_counter(key, value)) row.counters[key] = value.get<double>();
  }
  return row;
}

SampleLine line_from(const JsonNode& node) {
  SampleLine line;
  line.name = node.at(sample_line::kName).string();
  for (const JsonNode& value : node.at(sample_line::kSeconds).items()) {
    const double seconds = value.number();
    if (seconds <= 0) value.fail("a step cannot take 0 seconds or less");
    line.seconds.push_back(seconds);
  }
  if (const auto converged = node.find(sample_line::kConverged))
    line.converged = converged->boolean();
  if (const auto flags = node.find(sample_line::kFlags)) line.flags = flags->strings();
  line.json = node.value();
  return line;
}

}  // namespace

bool is_google_number(std::string_view key) {
  return std::find(kOwnNumbers.begin(), kOwnNumbers.end(), key) != kOwnNumbers.end();
}

std::optional<double> seconds_per_unit(std::string_view unit) {
  if (unit == "ns") return 1e-9;
  if (unit == "us") return 1e-6;
  if (unit == "ms") return 1e-3;
  if (unit == "s") return 1;
  return std::nullopt;
}

BenchFile bench_from_json(const nlohmann::json& json, const std::string& source) {
  const JsonNode root(json, source);
  BenchFile file;
  if (const auto context = root.find("context")) {
    context->members();
    file.context = context->value();
  }
  for (const JsonNode& node : root.at("benchmarks").items()) {
    if (!is_aggregate(node)) file.rows.push_back(row_from(node));
  }
  return file;
}

BenchFile read_bench(const std::string& path) {
  return bench_from_json(parse_json(read_text(path), path), path);
}

std::vector<SampleLine> samples_from_text(const std::string& text, const std::string& source) {
  std::vector<SampleLine> lines;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const std::string place = source + ":" + std::to_string(++number);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const nlohmann::json json = parse_json(line, place);
    lines.push_back(line_from(JsonNode(json, place)));
  }
  return lines;
}

std::vector<SampleLine> read_samples(const std::string& path) {
  return samples_from_text(read_text(path, kMaxSamplesBytes), path);
}

}  // namespace howmany::reports
