// SPDX-License-Identifier: Apache-2.0
#include "core/profile/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "core/base/perfetto.h"

namespace howmany {
namespace {

constexpr uint64_t kMix = 0x9e3779b97f4a7c15;  // spreads numbers over 64 bits

const char* unit_of(Category category) {
  const bool counts_flop = category == Category::compute || category == Category::step;
  return counts_flop ? "FLOP" : "bytes";
}

std::string name_of(const RecordedThread& thread) {
  const std::string role =
      thread.role.empty() ? "thread " + std::to_string(thread.id) : thread.role;
  if (thread.track < 0) return role;
  const std::string rank = std::to_string(thread.track);
  return role == "rank" ? "rank " + rank : role + " of rank " + rank;
}

// Requires `spans` in order, an outer span before its inner ones.
void add_slices(PerfettoTrack& track, const std::vector<const Span*>& spans, int64_t origin) {
  for (const Span* span : spans)
    track.add({std::max<int64_t>(0, span->start - origin), span->end - origin,
               name_of(span->category), span->name, unit_of(span->category), span->payload});
  track.close();
}

// Returns an id that differs between the recordings of a file.
uint64_t made_up_id(const Recording& recording) {
  uint64_t mixed = static_cast<uint64_t>(recording.start);
  for (const RecordedThread& thread : recording.threads)
    mixed = (mixed ^ static_cast<uint64_t>(thread.id)) * kMix;
  return mixed;
}

// Spans of one stream that do not overlap. Overlapping spans are in another lane.
struct GpuLane {
  std::string name;
  std::vector<const GpuSpan*> spans;
  int rank() const { return spans.front()->track; }
};

std::vector<GpuLane> lanes_of(const GpuActivity& gpus) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const GpuSpan*>> streams;
  for (const GpuSpan& span : gpus.spans) streams[{span.device, span.stream}].push_back(&span);
  std::vector<GpuLane> all;
  for (auto& [where, spans] : streams) {
    std::ranges::sort(spans, {}, &GpuSpan::start);
    std::vector<GpuLane> lanes;
    for (const GpuSpan* span : spans) {
      auto lane = std::ranges::find_if(
          lanes, [&](const GpuLane& l) { return l.spans.back()->end <= span->start; });
      if (lane == lanes.end()) {
        const std::string name = fmt::format("cuda:{} stream {}", where.first, where.second);
        lane = lanes.insert(lanes.end(), {name, {}});
      }
      lane->spans.push_back(span);
    }
    std::ranges::move(lanes, std::back_inserter(all));
  }
  return all;
}

void add_slices(PerfettoTrack& track, const GpuLane& lane, int64_t origin) {
  for (const GpuSpan* span : lane.spans) {
    const char* const kind = span->kind == GpuSpan::Kind::kernel ? "kernel" : "copy";
    const char* const category = span->category == Category::step ? kind : name_of(span->category);
    track.add({std::max<int64_t>(0, span->start - origin), span->end - origin, category, span->name,
               "bytes", span->bytes});
  }
  track.close();
}

bool leads(const RecordedThread& thread) { return thread.track >= 0 && thread.role == "rank"; }

// The tracks of one part of a group: first those of threads, then those of streams.
class Group {
 public:
  Group(std::string& trace, const Recording& recording, const TracePart& part)
      : tracks_(trace, part.id != 0 ? part.id : made_up_id(recording), part.part) {
    for (size_t i = 0; i < recording.threads.size(); ++i)
      if (leads(recording.threads[i])) ranks_[recording.threads[i].track] = i + 1;
    if (part.part == 0) tracks_.describe(part.group);
  }
  // Adds a track below the rank's track, or below the group if the rank has none.
  PerfettoTrack next(const std::string& name, int rank) {
    const auto above = ranks_.find(rank);
    return tracks_.next(name, above == ranks_.end() ? 0 : above->second);
  }

 private:
  PerfettoGroup tracks_;
  std::map<int, uint64_t> ranks_;  // the numbers of their tracks
};

}  // namespace

std::string perfetto_trace(const Recording& recording, const TracePart& part,
                           const GpuActivity& gpus) {
  std::string trace;
  Group tracks(trace, recording, part);
  const int64_t origin = part.origin != 0 ? part.origin : recording.start;
  std::vector<std::vector<const Span*>> threads(recording.threads.size());
  for (const Span& span : recording.spans) threads[span.thread].push_back(&span);
  for (size_t i = 0; i < threads.size(); ++i) {
    const RecordedThread& thread = recording.threads[i];
    PerfettoTrack track =
        tracks.next(name_of(thread) + (leads(thread) ? part.note : ""), thread.track);
    add_slices(track, threads[i], origin);
  }
  for (const GpuLane& lane : lanes_of(gpus)) {
    PerfettoTrack track = tracks.next(lane.name, lane.rank());
    add_slices(track, lane, origin);
  }
  return trace;
}

std::string perfetto_trace_within(size_t bytes, Recording& recording, const TracePart& part,
                                  GpuActivity& gpus) {
  std::string trace = perfetto_trace(recording, part, gpus);
  for (int64_t kept = recording.end - recording.start; trace.size() > bytes && kept > 0;) {
    kept /= 2;
    const auto late = [&](const auto& span) { return span.start >= recording.start + kept; };
    std::erase_if(recording.spans, late);
    std::erase_if(gpus.spans, late);
    trace = perfetto_trace(recording, part, gpus);
  }
  return trace;
}

}  // namespace howmany
