// SPDX-License-Identifier: Apache-2.0
// Text that may not be UTF-8, such as the names of files.
#pragma once

#include <cstddef>
#include <string>

namespace howmany {

// Returns the bytes of the UTF-8 character that starts at `at`; 0 if none does.
size_t utf8_length(const std::string& text, size_t at);
// Writes control characters and bytes that are not UTF-8 as "\x1b". Google Benchmark writes most of
// them to its JSON as they are, which makes it invalid.
std::string with_visible_controls(const std::string& text);

}  // namespace howmany
