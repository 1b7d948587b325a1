// SPDX-License-Identifier: Apache-2.0
// Pairs the benchmarks of two files whose names differ a little. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace howmany::reports {

// Returns (gone, fresh), the nearest first. A name is in one pair at most. Compares all pairs.
std::vector<std::pair<std::string, std::string>> near_names(std::vector<std::string> gone,
                                                            std::vector<std::string> fresh);

}  // namespace howmany::reports
