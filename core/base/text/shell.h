// SPDX-License-Identifier: Apache-2.0
// Words of a POSIX shell's command line. The functions are pure.
#pragma once

#include <string>
#include <vector>

namespace howmany {

std::string shell_quoted(const std::string& text);
// Quotes the text only if a shell would interpret it.
std::string shell_word(const std::string& text);
std::string shell_words(const std::vector<std::string>& words);  // with a blank between two

}  // namespace howmany
