// SPDX-License-Identifier: Apache-2.0
// Reads numbers as logs and people write them. Pure and thread-safe.
#pragma once

#include <optional>
#include <string_view>

namespace howmany {

struct LogNumber {
  double value = 0;
  std::string_view rest;  // of the text, without leading spaces
};

// Reads the number at the start of the text: "1,234.5", "1 234", "1.234,5", "1'234", "1_234", "1e3"
// or "1.2k". One comma before three digits separates thousands, unless it follows a lone 0. The
// prefixes k, M, G, B and T count as powers of ten. Returns nullopt if there is no number.
std::optional<LogNumber> leading_number(std::string_view text);

}  // namespace howmany
