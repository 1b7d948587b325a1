// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/other_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

constexpr const char* kExpected =
    "expected Google Benchmark's JSON (--benchmark_out=FILE --benchmark_out_format=json), or that "
    "of pytest-benchmark or hyperfine";

[[noreturn]] void refuse(const std::string& source, const std::string& what) {
  throw InputError(fmt::format("[{}] {}", source, what));
}

// The end of the first document, or npos if it is not complete.
size_t end_of_document(std::string_view text, size_t at) {
  int depth = 0;
  bool in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
      continue;
    }
    in_string = c == '"';
    depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

bool is_utf16(std::string_view text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff") ||
         (text.size() > 3 && text[0] == '{' && text[1] == '\0') ||
         (text.size() > 3 && text[0] == '\0' && text[1] == '{');
}

// A row of one timed run.
nlohmann::json row_of(const std::string& name, size_t index, const nlohmann::json& seconds) {
  return {{"name", name},
          {"run_name", name},
          {"run_type", "iteration"},
          {"repetition_index", index},
          {"real_time", seconds},
          {"time_unit", "s"}};
}

// Adds the timed runs, or their median if only that was saved.
void add_rows(nlohmann::json& rows, const std::string& name, const nlohmann::json& times,
              const nlohmann::json& median) {
  if (times.is_array() && !times.empty()) {
    for (size_t i = 0; i < times.size(); ++i) rows.push_back(row_of(name, i, times[i]));
    return;
  }
  nlohmann::json row = row_of(name, 0, median);
  row["name"] = name + "_median";
  row["run_type"] = "aggregate";
  row["aggregate_name"] = "median";
  rows.push_back(std::move(row));
}

std::string text_of(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = json_member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

nlohmann::json from_pytest(const nlohmann::json& json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const nlohmann::json& one : json["benchmarks"]) {
    const nlohmann::json& stats = json_member(one, "stats");
    const std::string full = text_of(one, "fullname");
    add_rows(rows, full.empty() ? text_of(one, "name") : full, json_member(stats, "data"),
             json_member(stats, stats.contains("median") ? "median" : "mean"));
  }
  const nlohmann::json& machine = json_member(json, "machine_info");
  nlohmann::json context = nlohmann::json::object();
  if (const std::string node = text_of(machine, "node"); !node.empty()) context["host_name"] = node;
  const nlohmann::json& cpu = json_member(machine, "cpu");
  if (json_member(cpu, "count").is_number()) context["num_cpus"] = json_member(cpu, "count");
  if (const std::string model = text_of(cpu, "brand_raw"); !model.empty())
    context["cpu_model"] = model;
  return {{"context", context}, {"benchmarks", rows}};
}

nlohmann::json from_hyperfine(const nlohmann::json& json) {
  nlohmann::json rows = nlohmann::json::array();
  for (const nlohmann::json& one : json["results"])
    add_rows(rows, text_of(one, "command"), json_member(one, "times"),
             json_member(one, one.contains("median") ? "median" : "mean"));
  return {{"context", nlohmann::json::object()}, {"benchmarks", rows}};
}

bool is_list_of(const nlohmann::json& list, const char* key) {
  return list.is_array() && !list.empty() &&
         std::ranges::all_of(
             list, [&](const nlohmann::json& one) { return one.is_object() && one.contains(key); });
}

// The tool that wrote it, with the remedy; empty if it is not known.
std::string other_tool(const nlohmann::json& json) {
  const auto has = [&](std::initializer_list<const char*> keys) {
    return json.is_object() &&
           std::ranges::all_of(keys, [&](const char* key) { return json.contains(key); });
  };
  if (is_list_of(json_member(json, "benchmarks"), "states")) return "is the JSON of nvbench";
  if (has({"mean", "median", "slope"}) || has({"iters", "times"}) || has({"reason"}))
    return "is the JSON of criterion: compare its baselines with critcmp";
  if (has({"result_columns"}) || has({"commit_hash", "results"}) || has({"graph_param_list"}))
    return "is a file of asv: asv compare judges these";
  if (is_list_of(json, "jmhVersion")) return "is the JSON of JMH";
  if (has({"schema"})) return "is a file of howmany that holds no benchmarks: give its folder";
  return "";
}

// The tool that printed the text; empty if it is not known.
std::string tool_of_text(std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  if (text.starts_with("name,iterations,real_time") || has("\nname,iterations,real_time"))
    return "is Google Benchmark's CSV";
  if (has("ns/op") || has("sec/op") || has("old time/op"))
    return "is the text of Go's benchmarks or benchstat: benchstat compares these";
  if (text.starts_with("<?xml") || text.starts_with("<")) return "is XML";
  if (has("Iterations") && has("CPU")) return "is Google Benchmark's text of the console";
  return "";
}

}  // namespace

void refuse_other_text(const std::string& text, const std::string& source) {
  if (is_utf16(text)) refuse(source, "is UTF-16, as PowerShell's > writes it: save it as UTF-8");
  const std::string_view view(text);
  size_t first = view.starts_with("\xef\xbb\xbf") ? 3 : 0;
  first = view.find_first_not_of(" \t\r\n", first);
  if (first == std::string_view::npos) refuse(source, fmt::format("is empty: {}", kExpected));
  if (view[first] != '{' && view[first] != '[') {
    const size_t later = std::min(view.find("\n{"), view.find("\n["));
    const std::string tool = tool_of_text(view.substr(first));
    if (later != std::string_view::npos && tool.find("Go's") == std::string::npos)
      refuse(source,
             "has text before the JSON: write the JSON to a file with --benchmark_out=FILE");
    if (!tool.empty()) refuse(source, fmt::format("{}; {}", tool, kExpected));
    return;
  }
  const size_t end = end_of_document(view, first);
  if (end == std::string_view::npos) return;
  const size_t more = view.find_first_not_of(" \t\r\n", end);
  if (more == std::string_view::npos) return;
  if (view[more] == '{' || view[more] == '[') {
    const size_t line = view.find('\n');
    if (view.substr(first, line - first).find("\"reason\"") != std::string_view::npos)
      refuse(source, "is the JSON of criterion: compare its baselines with critcmp");
    refuse(source, "holds two JSON documents or more: write each run to a file of its own");
  }
  refuse(source, "has text after the JSON: write the JSON to a file with --benchmark_out=FILE");
}

nlohmann::json as_google_json(nlohmann::json json, const std::string& source) {
  if (const std::string tool = other_tool(json);
      !tool.empty() && !is_list_of(json_member(json, "benchmarks"), "run_name"))
    refuse(source, fmt::format("{}; {}", tool, kExpected));
  if (is_list_of(json_member(json, "benchmarks"), "stats")) return from_pytest(json);
  if (is_list_of(json_member(json, "results"), "command")) return from_hyperfine(json);
  if (!json.is_object() || !json_member(json, "benchmarks").is_array())
    refuse(source, fmt::format("\"benchmarks\" is missing: {}", kExpected));
  return json;
}

}  // namespace howmany::reports
