// SPDX-License-Identifier: Apache-2.0
#include "core/base/cli/number_check.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

namespace howmany {
namespace {

constexpr double kMaxSeconds = 1e9;

std::optional<double> finite(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool hexadecimal = text.find_first_of("xX") != std::string::npos;
  const bool whole = end != text.c_str() && *end == '\0' && !hexadecimal;
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> integer(const std::string& text) {
  int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc{} && end == last ? std::optional(value) : std::nullopt;
}

}  // namespace

CLI::Validator above_zero() {
  const auto check = [](const std::string& text) {
    const auto value = finite(text);
    if (!value || *value <= 0) return fmt::format("expected a number above 0, not \"{}\"", text);
    return *value <= kMaxSeconds ? "" : fmt::format("{} is too large: 1e9 is the most", text);
  };
  return {check, ""};
}

CLI::Validator at_least_zero() {
  const auto check = [](const std::string& text) {
    const auto value = finite(text);
    return value && *value >= 0 ? ""
                                : fmt::format("expected a number of 0 or more, not \"{}\"", text);
  };
  return {check, ""};
}

CLI::Validator between(double low, double high) {
  const auto check = [=](const std::string& text) {
    const auto value = finite(text);
    return value && *value >= low && *value <= high
               ? ""
               : fmt::format("expected a number from {} to {}, not \"{}\"", low, high, text);
  };
  return {check, ""};
}

CLI::Validator not_empty() {
  const auto check = [](const std::string& text) {
    return std::string(text.empty() ? "expected a name, not \"\"" : "");
  };
  return {check, ""};
}

CLI::Validator at_least_one() {
  const auto check = [](const std::string& text) {
    return integer(text).value_or(0) >= 1
               ? ""
               : fmt::format("expected a whole number of 1 or more, not \"{}\"", text);
  };
  return {check, ""};
}

CLI::Validator whole_between(int64_t low, int64_t high) {
  const auto check = [=](const std::string& text) {
    const auto value = integer(text);
    return value && *value >= low && *value <= high
               ? ""
               : fmt::format("expected a whole number from {} to {}, not \"{}\"", low, high, text);
  };
  return {check, ""};
}

}  // namespace howmany
