// SPDX-License-Identifier: Apache-2.0
#include "core/profile/gpu_activity.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "core/profile/time_slices.h"

namespace howmany {
namespace {

// Returns the category of the innermost span at `time`. `spans` are those of one thread, an outer
// span before its inner ones.
Category innermost_at(std::span<const Span> spans, int64_t time) {
  auto after = std::ranges::upper_bound(spans, time, {}, &Span::start);
  while (after != spans.begin()) {
    const Span& span = *--after;
    if (span.category != Category::step && time < span.end) return span.category;
  }
  return Category::step;
}

struct Thread {
  int track = -1;
  std::span<const Span> spans;
};

std::unordered_map<int64_t, Thread> threads_of(const Recording& ranges) {
  std::unordered_map<int64_t, Thread> threads;
  for (auto first = ranges.spans.begin(); first != ranges.spans.end();) {
    const auto last = std::find_if(first, ranges.spans.end(),
                                   [&](const Span& s) { return s.thread != first->thread; });
    const RecordedThread& who = ranges.threads[first->thread];
    threads[who.id] = {who.track, {first, last}};
    first = last;
  }
  return threads;
}

GpuUse use_of(const StepUse& step, const TimeSlices& compute, const TimeSlices& comm,
              const TimeSlices& copy, const TimeSlices& all_comm) {
  const int64_t end = step.start + step.total;
  const auto within = [&](const TimeSlices& set) { return length_within(set, step.start, end); };
  GpuUse use{.compute = within(compute), .comm = within(comm), .copy = within(copy)};
  use.hidden_comm = within(all_comm) - use.comm;
  use.idle = step.total - use.compute - use.comm - use.copy;
  return use;
}

// NCCL may launch from its own threads, which have no ranges. Such kernels are identified by name,
// and their rank by the GPU.
void adopt_nccl(std::vector<GpuSpan>& spans) {
  std::unordered_map<uint32_t, int> track_of;
  for (const GpuSpan& span : spans)
    if (span.track >= 0) track_of.emplace(span.device, span.track);
  for (GpuSpan& span : spans) {
    if (span.track >= 0 || !span.name.starts_with("nccl")) continue;
    span.category = Category::comm;
    if (const auto found = track_of.find(span.device); found != track_of.end())
      span.track = found->second;
  }
}

}  // namespace

void join_ranges(GpuActivity& activity, const Recording& ranges) {
  const auto threads = threads_of(ranges);
  std::unordered_map<uint32_t, const LaunchCall*> calls;
  for (const LaunchCall& call : activity.calls) calls.emplace(call.correlation, &call);
  for (GpuSpan& span : activity.spans) {
    const auto call = calls.find(span.correlation);
    if (call == calls.end()) continue;
    const auto thread = threads.find(call->second->thread);
    if (thread == threads.end()) continue;
    span.track = thread->second.track;
    span.category = innermost_at(thread->second.spans, call->second->start);
  }
  adopt_nccl(activity.spans);
}

std::vector<GpuUse> gpu_uses(const GpuActivity& activity, const std::vector<StepUse>& steps,
                             int track) {
  TimeSlices compute, comm, copy;
  for (const GpuSpan& span : activity.spans) {
    if (span.track != track) continue;
    const bool talks = span.category == Category::comm;
    const bool computes = span.kind == GpuSpan::Kind::kernel;
    (talks ? comm : computes ? compute : copy).push_back({span.start, span.end});
  }
  compute = united(std::move(compute));
  comm = united(std::move(comm));
  const TimeSlices exposed = without(comm, compute);
  copy = without(without(united(std::move(copy)), compute), comm);
  std::vector<GpuUse> uses;
  for (const StepUse& step : steps) uses.push_back(use_of(step, compute, exposed, copy, comm));
  return uses;
}

}  // namespace howmany
