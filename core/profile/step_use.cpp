// SPDX-License-Identifier: Apache-2.0
#include "core/profile/step_use.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/base/error.h"
#include "core/profile/time_slices.h"

namespace howmany {
namespace {

using ByCategory = std::array<TimeSlices, kCategories + 1>;

TimeSlices& of(ByCategory& sets, Category category) { return sets[static_cast<size_t>(category)]; }

// Adds the time of each category. At each instant the innermost range of the thread counts. Ranges
// of category step are only containers.
void add_innermost(std::span<const Span> thread, ByCategory& sets) {
  std::vector<const Span*> open;
  int64_t at = 0;
  const auto give = [&](int64_t until) {
    if (until > at) of(sets, open.back()->category).push_back({at, until});
    at = std::max(at, until);
  };
  const auto close_until = [&](int64_t time) {
    while (!open.empty() && open.back()->end <= time) {
      give(open.back()->end);
      open.pop_back();
    }
  };
  for (const Span& span : thread) {
    if (span.category == Category::step) continue;
    close_until(span.start);
    if (!open.empty()) give(span.start);
    at = span.start;
    open.push_back(&span);
  }
  close_until(INT64_MAX);
}

bool is_step(const Span& span, std::string_view name) {
  return span.category == Category::step && span.name == name;
}

std::vector<std::span<const Span>> by_thread(const Recording& recording) {
  std::vector<std::span<const Span>> threads(recording.threads.size());
  for (auto first = recording.spans.begin(); first != recording.spans.end();) {
    const auto last = std::ranges::find_if(
        first, recording.spans.end(), [&](uint32_t thread) { return thread != first->thread; },
        &Span::thread);
    threads[first->thread] = {first, last};
    first = last;
  }
  return threads;
}

// The time of each category without the time of the categories before it.
struct Parts {
  TimeSlices compute, optimizer, comm, copy, data, hidden_comm;

  Parts(ByCategory sets, const TimeSlices& waits) {
    TimeSlices taken;
    const auto take = [&](const TimeSlices& wanted) {
      TimeSlices got = without(united(wanted), taken);
      taken.insert(taken.end(), got.begin(), got.end());
      taken = united(std::move(taken));
      return got;
    };
    compute = take(of(sets, Category::compute));
    optimizer = take(of(sets, Category::optimizer));
    comm = take(of(sets, Category::comm));
    copy = take(of(sets, Category::copy));
    data = take(waits);
    hidden_comm = without(united(of(sets, Category::comm)), comm);
  }
};

StepUse use_of(const Span& step, const Parts& parts) {
  const auto within = [&](const TimeSlices& set) {
    return length_within(set, step.start, step.end);
  };
  StepUse use{.start = step.start,
              .total = step.end - step.start,
              .compute = within(parts.compute),
              .optimizer = within(parts.optimizer),
              .comm = within(parts.comm),
              .copy = within(parts.copy),
              .data = within(parts.data),
              .hidden_comm = within(parts.hidden_comm)};
  use.host = use.total - use.compute - use.optimizer - use.comm - use.copy - use.data;
  return use;
}

}  // namespace

std::vector<StepUse> step_uses(const Recording& recording, std::string_view step, int track) {
  ByCategory sets;
  TimeSlices waits;  // for data, on the thread that runs the steps
  std::vector<Span> steps;
  const auto threads = by_thread(recording);
  for (size_t i = 0; i < threads.size(); ++i) {
    if (recording.threads[i].track != track) continue;
    ByCategory own;
    add_innermost(threads[i], own);
    const bool drives =
        std::ranges::any_of(threads[i], [&](const Span& s) { return is_step(s, step); });
    HM_ENSURE(!drives || steps.empty(), "[profile] two threads of track {} step at once", track);
    if (drives) waits = of(own, Category::data);
    std::ranges::copy_if(threads[i], std::back_inserter(steps),
                         [&](const Span& s) { return is_step(s, step); });
    for (size_t c = 0; c < sets.size(); ++c)
      sets[c].insert(sets[c].end(), own[c].begin(), own[c].end());
  }
  const Parts parts(std::move(sets), waits);
  std::vector<StepUse> uses;
  for (const Span& one : steps) uses.push_back(use_of(one, parts));
  return uses;
}

}  // namespace howmany
