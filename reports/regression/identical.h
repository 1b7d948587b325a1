// Whether two commands would run the very same program: then nothing needs to be measured. Values
// only; safe from any thread.
#pragma once

#include <string>
#include <vector>

namespace howmany::reports {

// Equal bytes, or ELF files whose loaded sections are equal, so that only the build id, debug
// information or the like differs. False when in doubt: libraries are looked up beside a program
// that says $ORIGIN, so two such programs in two folders may not be the same.
bool same_program(const std::string& a, const std::string& b);
// Word by word: equal words, or files that are the same program.
bool same_command(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace howmany::reports
