// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/log_number.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace howmany {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

std::string_view without_spaces(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
  return text;
}

// Exactly three digits at the start.
bool has_group(std::string_view text) {
  return text.size() >= 3 && std::ranges::all_of(text.substr(0, 3), is_digit) &&
         (text.size() == 3 || !is_digit(text[3]));
}

// The bytes of a separator that can only be of thousands; 0 if there is none.
size_t plain_separator(std::string_view text) {
  for (const std::string_view one : {"'", "_", " ", "\u00a0", "\u2009", "\u202f"})
    if (text.starts_with(one) && has_group(text.substr(one.size()))) return one.size();
  return 0;
}

// Removes the characters `mark` if they separate groups of three digits. Returns false if not.
bool join_groups(std::string& digits, char mark) {
  const size_t first = digits.find(mark);
  if (first == 0 || first > 3) return false;
  for (size_t at = first; at != std::string::npos; at = digits.find(mark, at)) {
    if (!has_group(std::string_view(digits).substr(at + 1))) return false;
    digits.erase(at, 1);
  }
  return true;
}

// Leaves a point for decimals and no other mark.
bool make_plain(std::string& digits) {
  const size_t comma = digits.rfind(','), point = digits.rfind('.');
  if (comma == std::string::npos)
    return std::ranges::count(digits, '.') < 2 || join_groups(digits, '.');
  if (point != std::string::npos) {
    if (comma < point) return join_groups(digits, ',');
    std::string whole = digits.substr(0, comma);
    if (!join_groups(whole, '.')) return false;
    digits = whole + "." + digits.substr(comma + 1);
    return true;
  }
  std::string joined = digits;
  if (!digits.starts_with("0,") && join_groups(joined, ',')) {
    digits = joined;
    return true;
  }
  digits[comma] = '.';
  return std::ranges::count(digits, ',') == 0;
}

double prefix_factor(std::string_view& rest) {
  const std::string_view text = without_spaces(rest);
  if (text.empty() || (text.size() > 1 && is_letter(text[1]))) return 1;
  constexpr std::string_view kPrefixes = "kKMGBT";
  constexpr double kFactors[] = {1e3, 1e3, 1e6, 1e9, 1e9, 1e12};
  const size_t found = kPrefixes.find(text[0]);
  if (found == std::string_view::npos) return 1;
  rest = text.substr(1);
  return kFactors[found];
}

}  // namespace

std::optional<LogNumber> leading_number(std::string_view text) {
  text = without_spaces(text);
  std::string digits;
  while (!text.empty()) {
    const bool marked = (text[0] == ',' || text[0] == '.') && text.size() > 1 && is_digit(text[1]);
    if (is_digit(text[0]) || marked || (text[0] == '.' && !digits.empty())) {
      digits += text[0];
      text.remove_prefix(1);
    } else if (const size_t size = plain_separator(text); size > 0 && !digits.empty()) {
      text.remove_prefix(size);
    } else {
      break;
    }
  }
  if (digits.empty() || !make_plain(digits)) return {};
  LogNumber number;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, number.value);
  if (error != std::errc() || at != end) return {};
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E')) {
    const std::string_view power = text.substr(text[1] == '+' ? 2 : 1);
    int exponent = 0;
    const auto [stop, bad] = std::from_chars(power.data(), power.data() + power.size(), exponent);
    if (bad == std::errc()) {
      const std::string all = digits + "e" + std::to_string(exponent);
      if (std::from_chars(all.data(), all.data() + all.size(), number.value).ec != std::errc())
        return {};
      text = std::string_view(stop, power.data() + power.size() - stop);
    }
  }
  number.value *= prefix_factor(text);
  number.rest = without_spaces(text);
  return number;
}

}  // namespace howmany
