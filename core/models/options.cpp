#include "core/models/options.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace howmany::models {
namespace {

int64_t parse_positive(std::string_view key, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  HM_REQUIRE(error == std::errc{} && end == text.data() + text.size() && value > 0,
             "[model] {}: '{}' is not a positive integer", key, text);
  return value;
}

}  // namespace

void allow(std::string_view model, const ModelOptions& options,
           const std::vector<std::string_view>& keys) {
  for (const auto& [key, value] : options) {
    HM_REQUIRE(!keys.empty(), "[model] {} takes no options, not '{}'", model, key);
    HM_REQUIRE(std::ranges::find(keys, key) != keys.end(), "[model] {}: {}", model,
               unknown_name("option", key, keys));
  }
}

int64_t positive(const ModelOptions& options, const std::string& key, int64_t otherwise) {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : parse_positive(key, found->second);
}

std::vector<int64_t> sizes(const ModelOptions& options, const std::string& key,
                           const std::string& otherwise) {
  const auto found = options.find(key);
  std::string_view text = found == options.end() ? otherwise : found->second;
  std::vector<int64_t> list;
  for (bool more = true; more;) {
    const size_t dash = text.find('-');
    list.push_back(parse_positive(key, text.substr(0, dash)));
    more = dash != std::string_view::npos;
    if (more) text.remove_prefix(dash + 1);
  }
  HM_REQUIRE(list.size() >= 2, "[model] {}: expected at least two sizes, such as 64-10", key);
  return list;
}

}  // namespace howmany::models
