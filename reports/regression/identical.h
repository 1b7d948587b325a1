// SPDX-License-Identifier: Apache-2.0
// Tests whether two commands run the same program, so that measuring is unnecessary. Values only;
// safe from any thread.
#pragma once

#include <string>
#include <vector>

namespace howmany::reports {

// True if the bytes are equal, or if the loaded sections of ELF files are equal. Then only the
// build id, debug information or the like differs. False if in doubt, for example if a program
// looks up libraries relative to $ORIGIN.
bool same_program(const std::string& a, const std::string& b);
// Compares word by word: equal words, or files that are the same program.
bool same_command(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace howmany::reports
