// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/options.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "core/base/text/names.h"

namespace howmany {

// Keys never begin with a digit, so such an item continues a list, as in
// "placement=0-3:cpu:0,4-9:cpu:1".
bool goes_on(std::string_view item) {
  return !item.empty() && item[0] >= '0' && item[0] <= '9' && item.find('=') == item.npos;
}

NamedOptions parse_named(std::string_view kind, std::string_view text) {
  const size_t colon = text.find(':');
  NamedOptions given{std::string(text.substr(0, colon)), {}};
  text.remove_prefix(colon == std::string_view::npos ? text.size() : colon + 1);
  std::string* value = nullptr;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (value && goes_on(item)) {
      value->append(",").append(item);
      continue;
    }
    const size_t equals = item.find('=');
    HM_REQUIRE(equals != std::string_view::npos && equals > 0,
               "[{}] option '{}' is not of the form key=value", kind, item);
    const auto [at, fresh] = given.options.emplace(item.substr(0, equals), item.substr(equals + 1));
    HM_REQUIRE(fresh, "[{}] option '{}' is given twice", kind, item.substr(0, equals));
    value = &at->second;
  }
  return given;
}

std::string text_of(const NamedOptions& named) {
  std::string text = named.name;
  for (const auto& [key, value] : named.options)
    text += (text.size() == named.name.size() ? ":" : ",") + key + "=" + value;
  return text;
}

std::vector<std::string> join_options(const std::vector<std::string>& pieces) {
  std::vector<std::string> modes;
  for (const std::string& piece : pieces) {
    const bool option = piece.find('=') < piece.find(':') || goes_on(piece);
    if (option && !modes.empty())
      modes.back() += "," + piece;
    else
      modes.push_back(piece);
  }
  return modes;
}

void allow_options(std::string_view kind, std::string_view name, const Options& options,
                   const std::vector<std::string_view>& keys) {
  for (const auto& [key, value] : options) {
    HM_REQUIRE(!keys.empty(), "[{}] {} takes no options, not '{}'", kind, name, key);
    HM_REQUIRE(std::ranges::find(keys, key) != keys.end(), "[{}] {}: {}", kind, name,
               unknown_name("option", key, keys));
  }
}

int64_t parse_positive(std::string_view kind, std::string_view key, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  HM_REQUIRE(error == std::errc{} && end == text.data() + text.size() && value > 0,
             "[{}] {}: '{}' is not a positive integer", kind, key, text);
  return value;
}

}  // namespace howmany
