// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/lines.h"

#include <algorithm>
#include <cctype>

namespace howmany {

std::string_view trimmed(std::string_view text, std::string_view of) {
  text.remove_prefix(std::min(text.find_first_not_of(of), text.size()));
  return text.substr(0, text.find_last_not_of(of) + 1);
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace howmany
