// --benchmark_filter, for programs that must know before Google Benchmark runs which cases it
// takes.
#pragma once

#include <string>
#include <vector>

namespace howmany::benches {

// Returns true if the flags `google` select the case `name`: a regular expression found anywhere in
// it, or not found if the filter begins with '-'.
bool selected(const std::string& name, const std::vector<std::string>& google);

}  // namespace howmany::benches
