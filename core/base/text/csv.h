// SPDX-License-Identifier: Apache-2.0
// Writes CSV by RFC 4180. Cells are quoted only if necessary, and lines end in CRLF. A number reads
// back as the same double. A number that is not finite is an empty cell.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany {

// Makes untrusted text harmless. Replaces control characters other than newlines by '?'. Puts an
// apostrophe before text that a spreadsheet would evaluate (= + - @ tab); numbers stay numbers.
std::string csv_text(const std::string& text);
std::string csv_number(const std::optional<double>& value);
void add_csv_row(std::string& csv, const std::vector<std::string>& cells);

}  // namespace howmany
