// SPDX-License-Identifier: Apache-2.0
// An event takes about 15 bytes: names are written once per track, times are differences, and the
// track is the default of its sequence.
#include "core/profile/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "core/base/protobuf.h"

namespace howmany {
namespace {

using Message = ProtobufMessage;

// Field numbers of perfetto's protos/perfetto/trace/**.proto.
namespace packet {
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequence = 10, kTrackEvent = 11,
                   kInterned = 12, kFlags = 13, kTimestampClock = 58, kDefaults = 59,
                   kTrackDescriptor = 60;
constexpr uint64_t kCleared = 1, kNeedsState = 2;
}  // namespace packet
namespace track {
constexpr uint32_t kUuid = 1, kName = 2, kParent = 5, kChildOrder = 11, kRank = 12;
constexpr uint64_t kExplicit = 3;
}  // namespace track
namespace event {
constexpr uint32_t kCategory = 3, kAnnotation = 4, kType = 9, kName = 10, kTrack = 11;
constexpr uint64_t kBegin = 1, kEnd = 2;
}  // namespace event
namespace interned {
constexpr uint32_t kCategories = 1, kNames = 2, kAnnotationNames = 3, kId = 1, kText = 2;
}
namespace annotation {
constexpr uint32_t kNameId = 1, kUint = 3;
}
constexpr uint64_t kMix = 0x9e3779b97f4a7c15;       // spreads numbers over 64 bits
constexpr uint64_t kBootClock = 6, kOwnClock = 64;  // kOwnClock: per sequence, incremental

void add_packet(std::string& trace, const Message& one) {
  trace += Message().message(1, one).bytes();
}

Message descriptor(uint64_t uuid, std::string_view name) {
  return Message().number(track::kUuid, uuid).text(track::kName, name);
}

// One track. Slices must be added in the order of their times.
class Track {
 public:
  Track(std::string& trace, uint32_t sequence, uint64_t uuid, const Message& described)
      : trace_(trace), sequence_(sequence) {
    const Message boot = Message().number(1, kBootClock).number(2, 0);
    const Message own = Message().number(1, kOwnClock).number(2, 0).number(3, 1);
    const Message defaults =
        Message()
            .number(packet::kTimestampClock, kOwnClock)
            .message(packet::kTrackEvent, Message().number(event::kTrack, uuid));
    add_packet(trace_,
               Message()
                   .number(packet::kSequence, sequence)
                   .number(packet::kFlags, packet::kCleared)
                   .message(packet::kClockSnapshot, Message().message(1, boot).message(1, own))
                   .message(packet::kDefaults, defaults));
    add_packet(
        trace_,
        Message().number(packet::kSequence, sequence).message(packet::kTrackDescriptor, described));
  }

  void begin(int64_t time, const char* category, std::string_view name, const char* unit,
             uint64_t payload) {
    Message fresh;
    Message begun =
        Message()
            .number(event::kType, event::kBegin)
            .number(event::kCategory, id(categories_, category, interned::kCategories, fresh))
            .number(event::kName, id(names_, name, interned::kNames, fresh));
    if (payload > 0)
      begun.message(
          event::kAnnotation,
          Message()
              .number(annotation::kNameId, id(units_, unit, interned::kAnnotationNames, fresh))
              .number(annotation::kUint, payload));
    add(time, begun, fresh);
  }
  void end(int64_t time) { add(time, Message().number(event::kType, event::kEnd), {}); }

 private:
  using Ids = std::map<std::string, uint64_t, std::less<>>;

  // Returns the id of a text. Adds its definition to `fresh` if the sequence has not used it yet.
  static uint64_t id(Ids& ids, std::string_view text, uint32_t field, Message& fresh) {
    if (const auto known = ids.find(text); known != ids.end()) return known->second;
    const uint64_t next = ids.size() + 1;
    ids.emplace(text, next);
    fresh.message(field, Message().number(interned::kId, next).text(interned::kText, text));
    return next;
  }

  void add(int64_t time, const Message& what, const Message& fresh) {
    Message one;
    one.number(packet::kTimestamp, static_cast<uint64_t>(time - last_))
        .number(packet::kSequence, sequence_)
        .number(packet::kFlags, packet::kNeedsState)
        .message(packet::kTrackEvent, what);
    if (!fresh.bytes().empty()) one.message(packet::kInterned, fresh);
    add_packet(trace_, one);
    last_ = time;
  }

  std::string& trace_;
  const uint32_t sequence_;
  int64_t last_ = 0;
  Ids categories_, names_, units_;
};

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
void add_slices(Track& track, const std::vector<const Span*>& spans, int64_t origin) {
  std::vector<int64_t> open;
  const auto close_until = [&](int64_t time) {
    for (; !open.empty() && open.back() <= time; open.pop_back()) track.end(open.back());
  };
  for (const Span* span : spans) {
    const int64_t start = std::max<int64_t>(0, span->start - origin);
    close_until(start);
    track.begin(start, name_of(span->category), span->name, unit_of(span->category), span->payload);
    open.push_back(span->end - origin);
  }
  close_until(INT64_MAX);
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

void add_slices(Track& track, const GpuLane& lane, int64_t origin) {
  for (const GpuSpan* span : lane.spans) {
    const char* const kind = span->kind == GpuSpan::Kind::kernel ? "kernel" : "copy";
    const char* const category = span->category == Category::step ? kind : name_of(span->category);
    const int64_t start = std::max<int64_t>(0, span->start - origin);
    track.begin(start, category, span->name, "bytes", span->bytes);
    track.end(std::max(start, span->end - origin));
  }
}

// Numbers the tracks of one part of a group: first those of threads, then those of streams.
class Group {
 public:
  Group(std::string& trace, const Recording& recording, const TracePart& part)
      : trace_(trace),
        uuid_(((part.id != 0 ? part.id : made_up_id(recording)) * kMix & ~uint64_t{UINT32_MAX}) |
              1),
        first_(static_cast<uint64_t>(part.part) * kMostTracks) {
    for (size_t i = 0; i < recording.threads.size(); ++i)
      if (leads(recording.threads[i])) ranks_[recording.threads[i].track] = uuid_ + first_ + i + 1;
    if (part.part == 0)
      add_packet(trace, Message()
                            .number(packet::kSequence, 1)
                            .message(packet::kTrackDescriptor, parent(uuid_, part.group)));
  }
  static bool leads(const RecordedThread& thread) {
    return thread.track >= 0 && thread.role == "rank";
  }
  // Adds a track below the rank's track, or below the group if the rank has none.
  Track next(const std::string& name, int rank) {
    const uint64_t uuid = uuid_ + first_ + ++tracks_;
    const auto above = ranks_.find(rank);
    const bool own = above == ranks_.end() || above->second == uuid;
    const Message described = parent(uuid, name)
                                  .number(track::kParent, own ? uuid_ : above->second)
                                  .number(track::kRank, first_ + tracks_);
    return {trace_, tracks_ + 1, uuid, described};
  }

 private:
  static constexpr uint64_t kMostTracks = 4096;
  static Message parent(uint64_t uuid, const std::string& name) {
    return descriptor(uuid, name).number(track::kChildOrder, track::kExplicit);
  }

  std::string& trace_;
  const uint64_t uuid_, first_;
  std::map<int, uint64_t> ranks_;
  uint32_t tracks_ = 0;
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
    Track track =
        tracks.next(name_of(thread) + (Group::leads(thread) ? part.note : ""), thread.track);
    add_slices(track, threads[i], origin);
  }
  for (const GpuLane& lane : lanes_of(gpus)) {
    Track track = tracks.next(lane.name, lane.rank());
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
