// SPDX-License-Identifier: Apache-2.0
// Splits text that people and programs write. Pure. Views are of the given text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace howmany {

constexpr std::string_view kBlanks = " \t\r\n";

// Returns the text without these characters at its ends.
std::string_view trimmed(std::string_view text, std::string_view of = kBlanks);
std::string lower(std::string_view text);  // ASCII
// Returns the trimmed lines.
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace howmany
