// Sets of time, as sorted, disjoint, half-open intervals in nanoseconds. Pure functions.
//
//   length_within(without(united(busy), united(waiting)), step.start, step.end)
#pragma once

#include <cstdint>
#include <vector>

namespace howmany {

struct Stretch {
  int64_t begin = 0, end = 0;
  auto operator<=>(const Stretch&) const = default;
};
using Stretches = std::vector<Stretch>;

Stretches united(Stretches any);  // input may be unsorted, overlapping or empty intervals
Stretches without(const Stretches& all, const Stretches& gone);
int64_t length_within(const Stretches& all, int64_t begin, int64_t end);

}  // namespace howmany
