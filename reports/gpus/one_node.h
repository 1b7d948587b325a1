// SPDX-License-Identifier: Apache-2.0
// Compares the measured rates of several nodes with those that one node would have predicted (the
// ladder of reports/predict). Values only; not tied to any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/results/record.h"

namespace howmany::reports {

constexpr const char* kOneNode = "one_node";

// Returns the member `one_node` of the answer `gpus`: for each count on several nodes
// {"devices", "nodes", "efficiency", "predicted", "predicted_low", "predicted_high", "inside"},
// with an interval of 90 %. Empty if no whole node was measured, none of several was, or the global
// batch is the same on each count.
nlohmann::ordered_json beside_one_node(const std::vector<Measurement>& measurements);

// Returns a sentence for each count. `gpus`: the answer.
std::vector<std::string> one_node_notes(const nlohmann::json& gpus);

}  // namespace howmany::reports
