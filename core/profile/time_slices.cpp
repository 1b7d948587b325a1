// SPDX-License-Identifier: Apache-2.0
#include "core/profile/time_slices.h"

#include <algorithm>

namespace howmany {

TimeSlices united(TimeSlices any) {
  std::erase_if(any, [](const TimeSlice& s) { return s.end <= s.begin; });
  std::ranges::sort(any);
  TimeSlices all;
  for (const TimeSlice& s : any) {
    if (all.empty() || all.back().end < s.begin)
      all.push_back(s);
    else
      all.back().end = std::max(all.back().end, s.end);
  }
  return all;
}

TimeSlices without(const TimeSlices& all, const TimeSlices& gone) {
  TimeSlices left;
  auto next = gone.begin();
  for (const TimeSlice& s : all) {
    int64_t at = s.begin;
    while (next != gone.end() && next->end <= at) ++next;
    for (auto g = next; g != gone.end() && g->begin < s.end; ++g) {
      if (at < g->begin) left.push_back({at, g->begin});
      at = std::max(at, g->end);
    }
    if (at < s.end) left.push_back({at, s.end});
  }
  return left;
}

int64_t length_within(const TimeSlices& all, int64_t begin, int64_t end) {
  int64_t length = 0;
  const auto ends_before = [](const TimeSlice& s, int64_t t) { return s.end <= t; };
  auto s = std::ranges::lower_bound(all, begin, {}, &TimeSlice::end);
  if (s != all.end() && ends_before(*s, begin)) ++s;
  for (; s != all.end() && s->begin < end; ++s)
    length += std::min(s->end, end) - std::max(s->begin, begin);
  return length;
}

}  // namespace howmany
