// Writes CSV by RFC 4180. Cells are quoted only if necessary, and lines end in CRLF. A number reads
// back as the same double. A number that is not finite is an empty cell.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany {

std::string csv_number(const std::optional<double>& value);
void add_csv_row(std::string& csv, const std::vector<std::string>& cells);

}  // namespace howmany
