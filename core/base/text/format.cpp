// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/format.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>

#include "core/base/error.h"

namespace howmany {
namespace {

constexpr double kManyDigits = 1e6;  // larger values have an exponent

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "-";
  return std::abs(value) < kManyDigits ? fmt::format("{:.{}f}", value, decimals)
                                       : fmt::format("{:.2e}", value);
}

// Three significant digits.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (value == std::floor(value) && size < 1000) return fixed(value, 0);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

std::string two_units(double seconds, double unit, const char* name, double part,
                      const char* rest) {
  const auto parts = static_cast<int64_t>(std::llround(seconds / part));
  const auto per = static_cast<int64_t>(std::llround(unit / part));
  return fmt::format("{} {} {} {}", parts / per, name, parts % per, rest);
}

}  // namespace

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds == 0) return "0 s";
  if (seconds < 1e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 60) return three_digits(seconds) + " s";
  if (seconds < 3600) return two_units(seconds, 60, "min", 1, "s");
  if (seconds < 48 * 3600) return two_units(seconds, 3600, "h", 60, "min");
  return three_digits(seconds / 86400) + " d";
}

std::string format_hours(double hours) {
  if (!std::isfinite(hours)) return "-";
  return hours > 0 && hours < 0.0995 ? fmt::format("{:.2g}", hours) : three_digits(hours);
}

std::string format_ratio(double ratio, int decimals) { return fixed(ratio, decimals); }

std::string format_percent(double share, int decimals) {
  return fixed(100 * share, decimals) + " %";
}

std::string format_count(double count) {
  if (!std::isfinite(count)) return "-";
  for (const auto& [factor, prefix] :
       {std::pair{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}}) {
    if (count >= factor * 0.9995) return three_digits(count / factor) + prefix;
  }
  if (count > 0 && count < 0.0995) return fmt::format("{:.2g}", count);
  return three_digits(count);
}

std::string format_gigabytes(double bytes) {
  if (!std::isfinite(bytes)) return "-";
  return bytes < 1e9 ? fmt::format("{:.3g} MB", bytes / 1e6)
                     : fmt::format("{:.3g} GB", bytes / 1e9);
}

double parse_count(const std::string& option, const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  const std::string suffix = end;
  if (suffix == "k" || suffix == "K") value *= 1e3;
  if (suffix == "M") value *= 1e6;
  if (suffix == "G" || suffix == "B") value *= 1e9;
  const bool known = suffix.empty() || (suffix.size() == 1 && suffix.find_first_of("kKMGB") == 0);
  if (end == text.c_str() || !known || !(value > 0) || value > kMostCount) {
    throw InputError(
        fmt::format("{}: \"{}\" is not a count above 0 and up to 1e15; write 50000, 1.28M or 2e9",
                    option, text));
  }
  return value;
}

std::string without_full_stop(std::string text) {
  while (text.ends_with('.')) text.pop_back();
  return text;
}

std::string number(int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string utc_now(const char* format) {
  std::tm now = fmt::gmtime(std::time(nullptr));
  char text[64] = {};
  std::strftime(text, sizeof text, format, &now);
  return text;
}

}  // namespace howmany
