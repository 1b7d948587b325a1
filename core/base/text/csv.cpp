// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/base/text/table.h"

namespace howmany {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return std::isspace(static_cast<unsigned char>(text[0])) == 0 && end != text.c_str() &&
         *end == '\0' && end == text.c_str() + text.size();
}

}  // namespace

std::string csv_text(const std::string& text) {
  const bool formula = !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != text.npos;
  std::string safe = formula && !is_number(text) ? "'" : "";
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    safe += without_controls(text.substr(at, end - at));
    if (end < text.size()) safe += '\n';
    at = end + 1;
  }
  return safe;
}

std::string csv_number(const std::optional<double>& value) {
  // "{}" formats a double with the fewest digits that read back as the same value.
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

void add_csv_row(std::string& csv, const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) csv += ',';
    csv += quoted(cells[i]);
  }
  csv += "\r\n";
}

}  // namespace howmany
