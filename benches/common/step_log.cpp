// SPDX-License-Identifier: Apache-2.0
#include "benches/common/step_log.h"

#include <stdexcept>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/files.h"
#include "core/base/text/json.h"

namespace howmany::benches {
namespace {

constexpr int64_t kMaxRanks = 16'384;

std::vector<std::pair<double, double>> points_from(const JsonNode& node) {
  std::vector<std::pair<double, double>> points;
  for (const JsonNode& item : node.items()) {
    const std::vector<JsonNode> pair = item.items();
    if (pair.size() != 2) item.fail("expected bytes and seconds");
    const std::pair<double, double> point = {pair[0].number(), pair[1].number()};
    if (point.second < 0 || point.first <= (points.empty() ? 0 : points.back().first))
      item.fail("expected ascending bytes and seconds of at least 0");
    points.push_back(point);
  }
  if (points.empty()) node.fail("expected a size");
  return points;
}

CostTable::Points points_of_kinds(const JsonNode& node) {
  CostTable::Points points;
  for (const char* kind :
       {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "send", "send_between"})
    if (const auto given = node.find(kind)) points[kind] = points_from(*given);
  return points;
}

EvenGroup group_from(const JsonNode& node, int world) {
  return {.ranks = static_cast<int>(node.at("ranks").integer_between(2, world)),
          .stride = static_cast<int>(node.at("stride").integer_between(1, world))};
}

}  // namespace

nlohmann::ordered_json steps_json(const std::vector<LoggedStep>& steps) {
  nlohmann::ordered_json all;
  for (const LoggedStep& step : steps) {
    nlohmann::ordered_json collectives = nlohmann::ordered_json::array();
    for (const LoggedCollective& one : step.collectives)
      collectives.push_back({{"op", one.op},
                             {"bytes", one.bytes},
                             {"ranks", one.group.ranks},
                             {"stride", one.group.stride},
                             {"at_s", one.at},
                             {"s", one.seconds},
                             {"backward", one.backward},
                             {"waited_s", number_or_null(one.waited)}});
    all.push_back({{"s", step.seconds}, {"collectives", collectives}});
  }
  return all;
}

CostTable cost_table_from(const JsonNode& root) {
  CostTable table;
  table.world = static_cast<int>(root.at("world").integer_between(2, kMaxRanks));
  if (const auto groups = root.find("groups"))
    for (const JsonNode& group : groups->items())
      table.groups[group_from(group, table.world)] = points_of_kinds(group);
  table.groups[{table.world, 1}] = points_of_kinds(root);
  if (const auto node = root.find("devices_per_node"))
    table.devices_per_node = static_cast<int>(node->integer_between(1, kMaxRanks));
  if (const auto flop = root.find("flop_per_byte")) {
    table.flop_per_byte = flop->number();
    if (table.flop_per_byte < 0) flop->fail("is negative");
  }
  const auto cores = root.find("core_s");
  if (!cores) return table;
  const std::vector<JsonNode> pair = cores->items();
  if (pair.size() != 2) cores->fail("expected seconds per call and per byte");
  table.core_s_per_call = pair[0].number();
  table.core_s_per_byte = pair[1].number();
  return table;
}

CostTable read_cost_table(const std::string& path) try {
  const nlohmann::json parsed = parse_json(read_text(path), path);
  return cost_table_from(JsonNode(parsed, path));
} catch (const InputError& e) {
  throw std::invalid_argument(e.what());
}

}  // namespace howmany::benches
