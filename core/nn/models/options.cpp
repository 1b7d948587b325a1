// SPDX-License-Identifier: Apache-2.0
#include "core/nn/models/options.h"

#include <charconv>
#include <limits>

#include "core/base/error.h"

namespace howmany::models {

void allow(std::string_view model, const ModelOptions& options,
           const std::vector<std::string_view>& keys) {
  allow_options("model", model, options, keys);
}

int64_t positive(const ModelOptions& options, const std::string& key, int64_t otherwise) {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : parse_positive("model", key, found->second);
}

bool yes_or_no(const ModelOptions& options, const std::string& key, bool otherwise) {
  const auto given = options.find(key);
  if (given == options.end()) return otherwise;
  HM_REQUIRE(given->second == "yes" || given->second == "no", "[model] {}={}: expected yes or no",
             key, given->second);
  return given->second == "yes";
}

namespace {

// Returns NaN if `text` is no number.
double number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? value : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

double number(const ModelOptions& options, const std::string& key, double otherwise) {
  const auto given = options.find(key);
  if (given == options.end()) return otherwise;
  const double value = number_of(given->second);
  HM_REQUIRE(value > 0 && value < 1e9, "[model] {}={}: expected a number above 0", key,
             given->second);
  return value;
}

double share(const ModelOptions& options, const std::string& key, double otherwise) {
  const auto given = options.find(key);
  if (given == options.end()) return otherwise;
  const double value = number_of(given->second);
  HM_REQUIRE(value >= 0 && value < 1, "[model] {}={}: expected a number from 0 to below 1", key,
             given->second);
  return value;
}

std::vector<int64_t> sizes(const ModelOptions& options, const std::string& key,
                           const std::string& otherwise) {
  const auto found = options.find(key);
  std::string_view text = found == options.end() ? otherwise : found->second;
  std::vector<int64_t> list;
  for (bool more = true; more;) {
    const size_t dash = text.find('-');
    list.push_back(parse_positive("model", key, text.substr(0, dash)));
    more = dash != std::string_view::npos;
    if (more) text.remove_prefix(dash + 1);
  }
  HM_REQUIRE(list.size() >= 2, "[model] {}: expected at least two sizes, such as 64-10", key);
  return list;
}

}  // namespace howmany::models
