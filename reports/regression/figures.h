// The figures of a trace of `howmany gate --self-test`. Values only; safe from any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/regression/rules.h"
#include "reports/regression/trace.h"

namespace howmany::reports {

// Every figure of a trace, schema howmany.selftest/1, and the text for people.
nlohmann::ordered_json figures(const std::vector<Launch>& launches, const GateRules& rules);
std::string render_figures(const nlohmann::ordered_json& figures);
// The spread of the machine with itself, schema howmany.noise/1, for --noise.
nlohmann::ordered_json noise(const std::vector<Launch>& launches, int pairs);

}  // namespace howmany::reports
