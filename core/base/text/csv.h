// RFC 4180: cells quoted where they must be, lines end in CRLF, a number reads back as the same
// double, what is not finite is an empty cell.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany {

std::string csv_number(const std::optional<double>& value);
void add_csv_row(std::string& csv, const std::vector<std::string>& cells);

}  // namespace howmany
