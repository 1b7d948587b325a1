// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/text/format.h"

namespace howmany {

std::string format_bytes(double bytes) {
  if (!std::isfinite(bytes)) return "-";
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  if (std::abs(bytes) >= 1e6) return fmt::format("{:.2e} {}", bytes, kUnits[unit]);
  const bool whole = std::abs(bytes - std::round(bytes)) < 0.005 * bytes || unit == 0;
  return fmt::format("{:.{}f} {}", bytes, whole ? 0 : bytes < 9.95 ? 2 : 1, kUnits[unit]);
}

std::string format_rate(double bytes_per_s) {
  if (!std::isfinite(bytes_per_s)) return "-";
  const std::string count = format_count(bytes_per_s);  // scaled below 1000, with its prefix
  return count + (std::isdigit(static_cast<unsigned char>(count.back())) ? " B/s" : "B/s");
}

std::string format_times(double factor) {
  if (!std::isfinite(factor)) return "-";
  return std::abs(factor) < 1e6 ? fmt::format("{:.{}f}x", factor, factor < 9.95 ? 1 : 0)
                                : fmt::format("{:.2e}x", factor);
}

int64_t parse_bytes(const std::string& option, const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  std::string suffix = end;
  std::erase(suffix, ' ');
  std::ranges::transform(suffix, suffix.begin(), [](unsigned char c) { return std::toupper(c); });
  double base = 1024;
  if (suffix.ends_with("IB")) {
    suffix.resize(suffix.size() - 2);
  } else if (suffix.size() == 2 && suffix[1] == 'B') {
    suffix.resize(1);
    base = 1000;
  } else if (suffix == "B") {
    suffix.clear();
  }
  constexpr std::string_view kPrefixes = "KMGT";
  const size_t power = suffix.size() == 1 ? kPrefixes.find(suffix[0]) : std::string_view::npos;
  if (power != std::string_view::npos) value *= std::pow(base, static_cast<double>(power + 1));
  const bool known = suffix.empty() || power != std::string_view::npos;
  if (end == text.c_str() || !known || !(value >= 1 && value <= std::ldexp(1, 40)))
    throw InputError(
        fmt::format("{}: \"{}\" is not a number of bytes; write 16384, 16K, 25M, 1G or "
                    "24GB",
                    option, text));
  return static_cast<int64_t>(value);
}

int64_t parse_memory(const std::string& option, const std::string& text) {
  constexpr int64_t kLeastBytes = 1'000'000;
  const int64_t bytes = parse_bytes(option, text);
  const bool has_unit = text.find_first_not_of("0123456789.eE+ ") != std::string::npos;
  if (!has_unit && bytes < kLeastBytes)
    throw InputError(
        fmt::format("{}: \"{}\" needs a unit; write {}GB or {}GiB", option, text, text, text));
  return bytes;
}

}  // namespace howmany
