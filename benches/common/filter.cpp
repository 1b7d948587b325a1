// SPDX-License-Identifier: Apache-2.0
#include "benches/common/filter.h"

#include <regex>

namespace howmany::benches {

bool selected(const std::string& name, const std::vector<std::string>& google) {
  const std::string flag = "--benchmark_filter=";
  for (const std::string& argument : google) {
    if (!argument.starts_with(flag)) continue;
    std::string filter = argument.substr(flag.size());
    if (filter.empty() || filter == "all") return true;
    const bool not_these = filter[0] == '-';
    if (not_these) filter.erase(0, 1);
    return std::regex_search(name + "/iterations:1/manual_time", std::regex(filter)) != not_these;
  }
  return true;
}

}  // namespace howmany::benches
