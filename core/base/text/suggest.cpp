#include "core/base/text/suggest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace howmany {
namespace {

// Edit distance where swapping two neighbours counts once: "mpl" is one slip from "mlp".
size_t distance(std::string_view a, std::string_view b) {
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

}  // namespace

std::string nearest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  size_t least = std::min<size_t>(3, std::max<size_t>(1, name.size() / 3)) + 1;
  for (const std::string& candidate : known) {
    const size_t d = distance(name.substr(0, 64), candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  }
  const auto goes_on = [&](const std::string& k) { return k.starts_with(name); };
  const auto longer = std::ranges::find_if(known, goes_on);
  return best.empty() && name.size() > 2 && longer != known.end() ? *longer : best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

}  // namespace howmany
