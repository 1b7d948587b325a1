#include "core/base/text/csv.h"

#include <fmt/format.h>

#include <cmath>

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

}  // namespace

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
