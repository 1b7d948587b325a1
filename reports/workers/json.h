// SPDX-License-Identifier: Apache-2.0
// Numbers that may be missing, in JSON.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace howmany::reports {

// null unless the value is finite.
inline nlohmann::ordered_json finite(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}
inline nlohmann::ordered_json optional(const std::optional<double>& value) {
  return value ? finite(*value) : nlohmann::ordered_json();
}

}  // namespace howmany::reports
