// SPDX-License-Identifier: Apache-2.0
// The formats that are JSON: everything, lines for `howmany history`, and SARIF.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <string_view>

#include "core/base/text/json.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;

Json interval(const std::optional<Interval>& of) {
  if (!of) return nullptr;
  return {number_or_null(of->low), number_or_null(of->high)};
}

Json row_json(const Row& row) {
  return {{"benchmark", row.benchmark},
          {"metric", row.metric},
          {"unit", row.kind.unit},
          {"better", row.kind.better == Better::kLess ? "less" : "more"},
          {"exact", row.kind.exact},
          {"verdict", name_of(row.verdict)},
          {"base", number_or_null(row.base)},
          {"candidate", number_or_null(row.candidate)},
          {"change", number_or_null(row.change)},
          {"change_interval", interval(row.interval)},
          {"p_slower", number_or_null(row.p_slower)},
          {"p_faster", number_or_null(row.p_faster)},
          {"base_samples", row.base_samples},
          {"candidate_samples", row.candidate_samples},
          {"floor", number_or_null(row.floor)},
          {"finds", number_or_null(row.finds)},
          {"needed", row.needed},
          {"why", row.why}};
}

constexpr size_t kMaxResults = 5000;  // GitHub's limit

// Returns a path as a relative URI reference.
std::string uri(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(byte) != 0 || std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out.empty() ? "unknown" : out;
}

Json result(const Comparison& c, const Row& row) {
  const Json physical = {{"artifactLocation", {{"uri", uri(c.candidate)}}},
                         {"region", {{"startLine", 1}}}};
  const Json logical = Json::array({{{"name", row.benchmark}, {"kind", "function"}}});
  return {
      {"ruleId", "performance-regression"},
      {"level", "error"},
      {"message", {{"text", sentence(row)}}},
      {"locations", Json::array({{{"physicalLocation", physical}, {"logicalLocations", logical}}})},
      {"partialFingerprints", {{"benchmarkAndMetric/v1", row.benchmark + " " + row.metric}}}};
}

}  // namespace

std::string as_json(const Comparison& c) {
  constexpr const char* kLevels[] = {"same", "comparable", "not comparable"};
  Json rows = Json::array(), renamed = Json::array(), counts = Json::object();
  for (const Row& row : c.rows) rows.push_back(row_json(row));
  for (const auto& [was, is] : c.renamed) renamed.push_back({{"base", was}, {"candidate", is}});
  for (int v = 0; v <= static_cast<int>(Verdict::kNew); ++v) {
    counts[name_of(static_cast<Verdict>(v))] = c.count(static_cast<Verdict>(v));
  }
  return dump_json({{"schema", "howmany.comparison/1"},
                    {"headline", headline(c)},
                    {"base", c.base},
                    {"candidate", c.candidate},
                    {"paired", c.paired},
                    {"method", method(c)},
                    {"machines", kLevels[static_cast<int>(c.likeness.level)]},
                    {"machines_differ", c.likeness.decisive},
                    {"also_differ", c.likeness.others},
                    {"counts", counts},
                    {"all_together", number_or_null(c.suite_change)},
                    {"all_together_interval", interval(c.suite_interval)},
                    {"renamed", renamed},
                    {"notes", c.notes},
                    {"rows", rows}});
}

// The base is a pinned anchor.
std::string as_history(const Comparison& c) {
  std::string lines;
  for (const Row& row : c.rows) {
    if (!row.change || *row.change <= -1 || !std::isfinite(*row.change)) continue;
    nlohmann::ordered_json line = {{"commit", c.commit},
                                   {"date", c.date},
                                   {"benchmark", row.benchmark},
                                   {"metric", row.metric},
                                   {"ratio", 1 + *row.change}};
    if (row.interval) {
      line["low"] = 1 + row.interval->low;
      line["high"] = 1 + row.interval->high;
    }
    lines += dump_json_line(line);
  }
  return lines;
}

std::string as_sarif(const Comparison& c) {
  Json results = Json::array();
  for (const Row& row : c.rows) {
    if (row.verdict == Verdict::kSlower && results.size() < kMaxResults)
      results.push_back(result(c, row));
  }
  const Json rule = {
      {"id", "performance-regression"},
      {"shortDescription", {{"text", "A benchmark became slower"}}},
      {"fullDescription", {{"text", "Worse for sure by more than the floor: " + method(c)}}}};
  const Json driver = {
      {"name", "howmany"}, {"version", HM_VERSION}, {"rules", Json::array({rule})}};
  const Json run = {{"tool", {{"driver", driver}}}, {"results", results}};
  return dump_json({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", Json::array({run})}});
}

}  // namespace howmany::reports
