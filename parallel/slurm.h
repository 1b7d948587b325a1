// Slurm's short forms. Pure functions.
#pragma once

#include <string>

namespace howmany {

// "node[07-12,20],gpu3" -> "node07"; empty for what is not understood.
std::string first_host(const std::string& node_list);
// The tasks of node `index` in "2(x3),1"; 0 when not told.
int tasks_on_node(const std::string& tasks_per_node, int index);

}  // namespace howmany
