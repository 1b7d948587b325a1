// SPDX-License-Identifier: Apache-2.0
// Evaluates --benchmark_filter, for programs that must know the selected cases before Google
// Benchmark runs.
#pragma once

#include <string>
#include <vector>

namespace howmany::benches {

// Returns true if the flags `google` select the case `name`. The filter is a regular expression
// that must be found anywhere in the name, or must not be found if it begins with '-'.
bool selected(const std::string& name, const std::vector<std::string>& google);

}  // namespace howmany::benches
