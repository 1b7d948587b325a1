#include "core/base/text/names.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.h"

namespace howmany {
namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;  // further is no longer a slip
  for (std::string_view name : known) {
    const size_t distance = edit_distance(word, name);
    if (distance >= std::min(least, std::max(word.size(), name.size()))) continue;
    least = distance;
    best = name;
  }
  return std::string(best);
}

std::string unknown_name(std::string_view kind, std::string_view word,
                         const std::vector<std::string_view>& known) {
  const std::string near = nearest(word, known);
  return fmt::format("unknown {} '{}'{} (known: {})", kind, word,
                     near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                     fmt::join(known, ", "));
}

}  // namespace howmany
