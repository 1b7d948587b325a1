// SPDX-License-Identifier: Apache-2.0
// Sets of time, as sorted, disjoint, half-open intervals in nanoseconds. Pure functions.
//
//   length_within(without(united(busy), united(waiting)), step.start, step.end)
#pragma once

#include <cstdint>
#include <vector>

namespace howmany {

struct TimeSlice {
  int64_t begin = 0, end = 0;
  auto operator<=>(const TimeSlice&) const = default;
};
using TimeSlices = std::vector<TimeSlice>;

TimeSlices united(TimeSlices any);  // input may be unsorted, overlapping or empty intervals
TimeSlices without(const TimeSlices& all, const TimeSlices& gone);
int64_t length_within(const TimeSlices& all, int64_t begin, int64_t end);

}  // namespace howmany
