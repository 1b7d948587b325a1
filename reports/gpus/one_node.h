// SPDX-License-Identifier: Apache-2.0
// Puts the measured rates of several nodes beside those that one node would have predicted (the
// ladder of reports/predict). Values only; not tied to any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/results/record.h"

namespace howmany::reports {

// Returns the member `one_node` of the summary's answer: for each count on several nodes
// {"devices", "nodes", "efficiency", "predicted", "predicted_low", "predicted_high", "inside"},
// with an interval of 90 %. Empty if no whole node was measured, none of several was, or the global
// batch is the same on each count.
nlohmann::ordered_json beside_one_node(const std::vector<Measurement>& measurements);

// Returns a sentence for each count.
std::vector<std::string> one_node_notes(const nlohmann::json& answer);

}  // namespace howmany::reports
