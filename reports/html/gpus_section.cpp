// SPDX-License-Identifier: Apache-2.0
#include "reports/html/gpus_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <sstream>
#include <vector>

#include "core/base/schema/metrics.h"
#include "core/base/text/escape.h"
#include "core/base/text/format.h"
#include "reports/gpus/advise.h"
#include "reports/gpus/slurm.h"
#include "reports/html/chart.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

using PlainJson = nlohmann::json;

constexpr size_t kMaxRows = 200, kMaxText = 120, kMaxScript = 20'000;

std::string shown(const PlainJson& row, const char* key, std::string (*format)(double)) {
  const auto value = json_number(row, key);
  return value && *value >= 0 ? format(*value) : "-";
}

std::string plain_ratio(double value) { return format_ratio(value); }

std::string interval(const PlainJson& row) {
  const auto low = json_number(row, "efficiency_low"), high = json_number(row, "efficiency_high");
  return low && high ? plain_ratio(*low) + " to " + plain_ratio(*high) : "-";
}

std::string range(const PlainJson& row, const char* low, const char* high,
                  std::string (*format)(double)) {
  const auto from = json_number(row, low), to = json_number(row, high);
  return from && to ? format(*from) + " to " + format(*to) : "";
}

// The kind of evidence is the row's class.
std::string beyond_row(const PlainJson& row, const char* kind) {
  const PlainJson& refused = json_member(row, "refused");
  const std::string evidence = refused.is_string() ? "none: " + refused.get<std::string>() : kind;
  std::string html;
  for (const std::string& text :
       {shown(row, "devices", format_count), evidence,
        shown(row, metric::kSamplesPerS, format_count), range(row, "low", "high", format_count),
        shown(row, "efficiency", plain_ratio),
        range(row, "efficiency_low", "efficiency_high", plain_ratio)})
    html += "<td>" + escaped(text, kMaxText) + "</td>";
  return fmt::format("<tr class=\"{}\">{}</tr>\n", kind, html);
}

std::string plan_row(const PlainJson& row, const PlainJson& recommended, bool across) {
  const bool chosen =
      json_member(row, "best") == true && json_member(row, "devices") == recommended;
  std::string html;
  if (across) html += "<td>" + escaped(shown(row, "nodes", format_count), kMaxText) + "</td>";
  for (const std::string& text :
       {shown(row, "devices", format_count), json_text(json_member(row, "mode")),
        json_text(json_member(row, "backend")), shown(row, metric::kSamplesPerS, format_count),
        shown(row, "speedup", plain_ratio), shown(row, "efficiency", plain_ratio), interval(row),
        shown(row, "seconds_to_train", format_seconds),
        shown(row, "device_hours_to_train", format_hours)})
    html += "<td>" + escaped(text, kMaxText) + "</td>";
  const bool valid = json_member(row, "valid") == true;
  return fmt::format("<tr{}>{}<td>{}</td></tr>\n", chosen ? " class=\"chosen\"" : "", html,
                     chosen  ? "recommended"
                     : valid ? ""
                             : "not valid");
}

}  // namespace

std::string gpus_table(const PlainJson& one, const PlainJson& answer) {
  const PlainJson& table = json_member(one, "table");
  const auto samples = json_number(answer, "samples_to_train");
  if (!table.is_array() || !samples) return "";
  bool across = false;
  for (size_t i = 0; i < std::min(table.size(), kMaxRows); ++i)
    across = across || json_number(table[i], "nodes").value_or(1) > 1;
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  if (across) html += "<th scope=\"col\">nodes</th>";
  for (const std::string& title : std::vector<std::string>{
           "devices", "mode", "backend", "samples/s", "speedup", "efficiency", "95 % interval",
           "time for " + format_count(*samples) + " samples", "device-hours", ""})
    html += "<th scope=\"col\">" + escaped(title, kMaxText) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < std::min(table.size(), kMaxRows); ++i)
    html += plan_row(table[i], json_member(one, "recommended"), across);
  return html + "</tbody></table></div>\n";
}

std::string beyond_table(const PlainJson& beyond) {
  std::multimap<double, std::string> rows;  // by devices
  for (const char* const kind : {"measured", "rehearsed", "predicted"}) {
    const PlainJson& table = json_member(beyond, kind);
    for (size_t i = 0; table.is_array() && i < std::min(table.size(), kMaxRows); ++i)
      rows.emplace(json_number(table[i], "devices").value_or(0), beyond_row(table[i], kind));
  }
  if (rows.empty()) return "";
  std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
  for (const char* const title :
       {"devices", "evidence", "samples/s", "90 % interval", "efficiency", "90 % interval"})
    html += fmt::format("<th scope=\"col\">{}</th>", title);
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& [devices, row] : rows) html += row;
  return html + "</tbody></table></div>\n";
}

std::string job_script_section(const Summary& summary) {
  if (!summary.answer.is_object() || !summary.answer.contains("gpus")) return "";
  std::string script;
  try {
    const AdviceOptions options = options_from_answer(summary.answer, "summary.json");
    script = slurm_script(summary, advise(summary.measurements, options), options);
  } catch (const std::exception&) {  // no recommendation, or parameters are missing
    return "";
  }
  std::istringstream lines(script.substr(0, kMaxScript));
  std::string html;
  for (std::string line; std::getline(lines, line);) html += escaped(line) + "\n";
  return "<details><summary>Job script for Slurm</summary>\n<div class=\"scroll\"><pre>" + html +
         "</pre></div></details>\n";
}

}  // namespace howmany::reports
