// SPDX-License-Identifier: Apache-2.0
// Completion in bash, zsh and fish. `howmany completion SHELL` prints a script. The script calls
// `howmany __complete WORD...`, which prints the words that fit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace howmany::reports {

inline constexpr std::string_view kComplete = "__complete";

// Prints the words that can replace the last of `words`, one a line, with a tab and its help.
// Prints
// ":files" or ":folders" if a path belongs there. Evaluates nothing. `words` follow the name of the
// program; readline splits them at '='.
void print_completions(const CLI::App& app, std::vector<std::string> words);

// Adds the options of `howmany completion`.
void add_completion(CLI::App& sub, int& code);

}  // namespace howmany::reports
