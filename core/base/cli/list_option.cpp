// SPDX-License-Identifier: Apache-2.0
#include "core/base/cli/list_option.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

namespace howmany {

std::vector<std::string> split_list(const std::string& option,
                                    const std::vector<std::string>& given) {
  std::vector<std::string> values;
  for (const std::string& text : given)
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      if (end == at) throw CLI::ValidationError(option, "a value of \"" + text + "\" is empty");
      values.push_back(text.substr(at, end - at));
      at = end + 1;
    }
  return values;
}

std::vector<std::string> expanded_devices(const std::vector<std::string>& devices) {
  std::vector<std::string> all;
  for (const std::string& device : devices) {
    int first = 0, last = -1, end = 0;
    const size_t colon = device.find(':');
    const char* range = colon == std::string::npos ? "" : device.c_str() + colon + 1;
    const bool is_range = std::sscanf(range, "%4d-%4d%n", &first, &last, &end) == 2 &&
                          range[end] == '\0' && first >= 0 && first <= last;
    if (!is_range) all.push_back(device);
    for (int i = first; is_range && i <= last; ++i) {
      all.push_back(device.substr(0, colon + 1) + std::to_string(i));
    }
  }
  return all;
}

}  // namespace howmany
