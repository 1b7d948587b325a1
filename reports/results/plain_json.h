// SPDX-License-Identifier: Apache-2.0
// Reads JSON of untrusted files that may lack anything. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace howmany::reports {

// Returns the member, or a null value if `json` is no object or has no such member.
const nlohmann::json& json_member(const nlohmann::json& json, const std::string& key);
// Returns the member, or nullopt if it is missing, no number or not finite.
std::optional<double> json_number(const nlohmann::json& json, const std::string& key);
// Returns a string as it is, and other values as JSON.
std::string json_text(const nlohmann::json& json);

}  // namespace howmany::reports
