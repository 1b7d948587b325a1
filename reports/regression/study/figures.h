// SPDX-License-Identifier: Apache-2.0
// Computes the figures of a trace of `howmany gate --self-test`. Values only; safe from any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/regression/rules.h"
#include "reports/regression/trace.h"

namespace howmany::reports {

// Returns every figure of a trace (schema howmany.selftest/1) and its text.
nlohmann::ordered_json figures(const std::vector<Launch>& launches, const GateRules& rules);
std::string render_figures(const nlohmann::ordered_json& figures);
// Returns the A/A spread of the machine (schema howmany.noise/1) for --noise.
nlohmann::ordered_json noise(const std::vector<Launch>& launches, int pairs);

}  // namespace howmany::reports
