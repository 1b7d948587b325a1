// SPDX-License-Identifier: Apache-2.0
// The lost time of a step at each number of devices as bars and a table, and the changes that would
// help. The answer may come from an untrusted file. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace howmany::reports {

// `why`: the member of the summary's answer, see reports/why/why.h. Returns "" without one.
std::string why_section(const nlohmann::json& why);

}  // namespace howmany::reports
