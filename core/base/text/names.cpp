// SPDX-License-Identifier: Apache-2.0
#include "core/base/text/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace howmany {

// Edit distance in which a swap of two neighbours costs one: "mpl" is one edit from "mlp".
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, above, row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(above, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::string nearest(std::string_view name, const std::vector<std::string_view>& known) {
  std::string_view best;
  size_t least = std::min<size_t>(3, std::max<size_t>(1, name.size() / 3)) + 1;
  for (const std::string_view candidate : known) {
    const size_t distance = edit_distance(name.substr(0, 64), candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  const auto longer =
      std::ranges::find_if(known, [&](std::string_view k) { return k.starts_with(name); });
  return std::string(best.empty() && name.size() > 2 && longer != known.end() ? *longer : best);
}

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  return nearest(name, std::vector<std::string_view>(known.begin(), known.end()));
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string_view>& known) {
  const std::string near = nearest(name, known);
  return fmt::format("unknown {} '{}'{} (known: {})", kind, name,
                     near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                     fmt::join(known, ", "));
}

void require_known(std::string_view kind, std::string_view name,
                   const std::vector<std::string_view>& known) {
  if (std::ranges::find(known, name) == known.end())
    throw std::invalid_argument(unknown_name(kind, name, known));
}

}  // namespace howmany
