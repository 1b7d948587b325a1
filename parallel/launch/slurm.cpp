// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/slurm.h"

#include <cstdio>
#include <sstream>

namespace howmany {

std::string first_host(const std::string& node_list) {
  const std::string head = node_list.substr(0, node_list.find(','));
  const size_t open = head.find('[');
  if (open == std::string::npos) return head;
  const size_t close = node_list.find(']', open);
  if (close == std::string::npos) return "";
  const std::string first =
      node_list.substr(open + 1, node_list.find_first_of("-,]", open) - open - 1);
  // A suffix after the bracket belongs to every name: "rack[1-2]n5", "rack[1-2]n[01-04]".
  const size_t end = node_list.find(',', close);
  const std::string tail =
      node_list.substr(close + 1, end == std::string::npos ? end : end - close - 1);
  const size_t again = node_list.find('[', close);
  const bool nested = again != std::string::npos && (end == std::string::npos || again < end);
  return head.substr(0, open) + first + (nested ? first_host(node_list.substr(close + 1)) : tail);
}

int tasks_on_node(const std::string& tasks_per_node, int index) {
  std::istringstream parts(tasks_per_node);
  for (std::string part; std::getline(parts, part, ',');) {
    int tasks = 0, nodes = 1;
    if (std::sscanf(part.c_str(), "%9d(x%9d)", &tasks, &nodes) < 1) return 0;
    if (index < nodes) return tasks;
    index -= nodes;
  }
  return 0;
}

}  // namespace howmany
