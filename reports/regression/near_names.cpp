// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/near_names.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <tuple>

#include "core/base/text/names.h"

namespace howmany::reports {
namespace {

// The edit distance of two names, of which only letters and digits count, if they may denote the
// same benchmark: if a few letters differ, or if one begins or ends with the other.
std::optional<size_t> name_distance(const std::string& was, const std::string& is) {
  constexpr size_t kMaxDiffering = 64;
  const auto plain = [](const std::string& name) {
    std::string letters;
    for (const unsigned char c : name)
      if (std::isalnum(c) != 0) letters += static_cast<char>(std::tolower(c));
    return letters;
  };
  const std::string a = plain(was), b = plain(is);
  const auto [shorter, longer] = std::minmax({a.size(), b.size()});
  if (shorter < 3) return {};
  const size_t first = std::ranges::mismatch(a, b).in1 - a.begin();
  size_t last = 0;
  while (first + last < shorter && a[a.size() - 1 - last] == b[b.size() - 1 - last]) ++last;
  if (first + last == shorter) return longer - shorter;
  if (longer - first - last > kMaxDiffering) return {};
  const size_t distance = edit_distance(std::string_view(a).substr(first, a.size() - first - last),
                                        std::string_view(b).substr(first, b.size() - first - last));
  if (distance > longer / 4 + 1 || 2 * distance > shorter) return {};
  return distance;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> near_names(std::vector<std::string> gone,
                                                            std::vector<std::string> fresh) {
  std::vector<std::tuple<size_t, std::string, std::string>> pairs;
  for (const std::string& was : gone)
    for (const std::string& is : fresh)
      if (const auto distance = name_distance(was, is)) pairs.emplace_back(*distance, was, is);
  std::ranges::stable_sort(pairs, {}, [](const auto& pair) { return std::get<0>(pair); });
  std::vector<std::pair<std::string, std::string>> near;
  for (const auto& [distance, was, is] : pairs) {
    if (std::ranges::count(gone, was) == 0 || std::ranges::count(fresh, is) == 0) continue;
    std::erase(gone, was);
    std::erase(fresh, is);
    near.emplace_back(was, is);
  }
  return near;
}

}  // namespace howmany::reports
