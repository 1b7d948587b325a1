// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/base/text/json.h"
#include "reports/regression/text.h"
#include "reports/regression/writer.h"

namespace howmany::reports {
namespace {

using Json = nlohmann::ordered_json;
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
