// SPDX-License-Identifier: Apache-2.0
#include "reports/results/plain_json.h"

#include <cmath>

namespace howmany::reports {

const nlohmann::json& json_member(const nlohmann::json& json, const std::string& key) {
  static const nlohmann::json kNull;
  if (!json.is_object()) return kNull;
  const auto found = json.find(key);
  return found == json.end() ? kNull : *found;
}

std::optional<double> json_number(const nlohmann::json& json, const std::string& key) {
  const nlohmann::json& value = json_member(json, key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
  return value.get<double>();
}

std::string json_text(const nlohmann::json& json) {
  if (json.is_string()) return json.get<std::string>();
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace howmany::reports
