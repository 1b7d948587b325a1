// SPDX-License-Identifier: Apache-2.0
#include "reports/gpus/one_node.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "core/base/schema/metrics.h"
#include "core/base/schema/parameters.h"
#include "core/base/text/format.h"
#include "core/base/text/json.h"
#include "reports/predict/ladder.h"
#include "reports/results/plain_json.h"

namespace howmany::reports {
namespace {

struct Fastest {
  int nodes = 1;
  double per_s = 0, efficiency = 0;
};

int number_in(const Measurement& m, const char* key) {
  return std::atoi(parameter_of(m, key).c_str());
}

// By devices, for the first model.
std::map<int, Fastest> fastest_of(const std::vector<Measurement>& measurements) {
  std::map<int, Fastest> all;
  const std::string model =
      measurements.empty() ? "" : parameter_of(measurements.front(), parameter::kModel);
  for (const Measurement& m : measurements) {
    const double rate = value_of(m, metric::kSamplesPerS);
    const bool counts = m.suite == "speedup" && !has_failed(m) && rate > 0 &&
                        parameter_of(m, parameter::kModel) == model;
    if (counts && rate > all[number_in(m, parameter::kDevices)].per_s)
      all[number_in(m, parameter::kDevices)] = {number_in(m, parameter::kNodes), rate,
                                                value_of(m, "efficiency")};
  }
  std::erase_if(all, [](const auto& one) { return one.second.per_s == 0; });
  return all;
}

}  // namespace

nlohmann::ordered_json beside_one_node(const std::vector<Measurement>& measurements) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::vector<RateAt> known;
  std::map<int, Fastest> several;
  for (const auto& [devices, one] : fastest_of(measurements)) {
    if (one.nodes <= 1) known.push_back({devices, one.per_s});
    if (one.nodes > 1) several[devices] = one;
  }
  if (known.empty() || several.empty()) return rows;
  for (const Measurement& m : measurements)
    if (parameter_of(m, parameter::kScaling) == "strong") return rows;
  const int per_node = several.begin()->first / several.begin()->second.nodes;
  if (known.back().devices != per_node) return rows;
  for (const auto& [devices, one] : several) {
    const Predicted predicted = predict(known, devices, per_node);
    if (!predicted.refused.empty()) continue;
    const double efficiency = std::isfinite(one.efficiency)
                                  ? one.efficiency  // within rounds, or within a job of a study
                                  : relative_efficiency(known.front(), {devices, one.per_s});
    const Range& range = predicted.efficiency;
    rows.push_back({{"devices", devices},
                    {"nodes", one.nodes},
                    {"efficiency", efficiency},
                    {"predicted", range.value},
                    {"predicted_low", range.low},
                    {"predicted_high", range.high},
                    {"inside", range.low <= efficiency && efficiency <= range.high}});
  }
  return rows;
}

std::vector<std::string> one_node_notes(const nlohmann::json& gpus) {
  std::vector<std::string> notes;
  if (!gpus.is_object()) return notes;
  const JsonNode root(gpus, "summary.json");
  const auto rows = root.find(kOneNode);
  if (!rows) return notes;
  for (const JsonNode& row : rows->items()) {
    const auto ratio = [&](const char* key) { return format_ratio(row.at(key).number()); };
    notes.push_back(fmt::format(
        "From one node alone, {} nodes were predicted at efficiency {} (90 % interval {} to {}); "
        "measured: {}{}.",
        row.at("nodes").integer(), ratio("predicted"), ratio("predicted_low"),
        ratio("predicted_high"), ratio("efficiency"),
        row.at("inside").boolean() ? "" : ", outside of it"));
  }
  return notes;
}

}  // namespace howmany::reports
