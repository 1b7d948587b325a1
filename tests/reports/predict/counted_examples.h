// SPDX-License-Identifier: Apache-2.0
// Hand-made counts of steps.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/predict/counted.h"

namespace howmany::reports {

inline nlohmann::json op_json(const std::string& work, const std::string& dtype, double flop,
                              double bytes, const std::string& phase) {
  return {{"op", "one"},   {"work", work}, {"dtype", dtype}, {"flop", flop},
          {"read", bytes}, {"written", 0}, {"phase", phase}};
}

// A forward product, a backward one and the optimizer. The gradient of 30 MiB is ready before the
// optimizer. If there are several ranks, it is exchanged there.
inline nlohmann::json count_json(int world = 1, double samples = 32) {
  nlohmann::json json = {{"way", "shapes"},
                         {"device", "NVIDIA A100"},
                         {"world", world},
                         {"samples", samples},
                         {"micro_batches", 1},
                         {"parallel", world > 1 ? "ddp" : "none"},
                         {"compiled", false},
                         {"kinds",
                          {op_json("product", "bf16", 1e12, 1e6, "forward"),
                           op_json("product", "bf16", 2e12, 1e6, "backward"),
                           op_json("memory", "f32", 0, 1e9, "optimizer")}},
                         {"order", {0, 1, 2}},
                         {"collectives", nlohmann::json::array()},
                         {"gradients", {{2, 30 << 20}}},
                         {"host_ops", 3},
                         {"memory",
                          {{"parameters", 1e8},
                           {"gradients", 1e8},
                           {"optimizer", 2e8},
                           {"peak", 1e9},
                           {"reserved", 2e9}}},
                         {"refused", nullptr}};
  if (world == 1) return json;
  json["order"] = {0, 1, -1, 2};
  json["collectives"] = {
      {{"op", "all_reduce"}, {"bytes", 30 << 20}, {"ranks", world}, {"stride", 1}}};
  return json;
}

inline CountedStep count_of(const nlohmann::json& json) { return counted_from(json, "count"); }

}  // namespace howmany::reports
