// SPDX-License-Identifier: Apache-2.0
// Parses Slurm's compact lists. Pure functions.
#pragma once

#include <string>

namespace howmany {

// "node[07-12,20],gpu3" -> "node07". Returns "" if the list cannot be parsed.
std::string first_host(const std::string& node_list);
// Returns the tasks of node `index` in a list such as "2(x3),1", or 0 if unknown.
int tasks_on_node(const std::string& tasks_per_node, int index);

}  // namespace howmany
