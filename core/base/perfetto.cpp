// SPDX-License-Identifier: Apache-2.0
// An event takes about 15 bytes: names are written once per track, times are differences, and the
// track is the default of its sequence.
#include "core/base/perfetto.h"

#include <algorithm>

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

constexpr uint64_t kMaxTracks = 4096;  // of a part

Message parent(uint64_t uuid, const std::string& name) {
  return descriptor(uuid, name).number(track::kChildOrder, track::kExplicit);
}

}  // namespace

PerfettoTrack::PerfettoTrack(std::string& trace, uint32_t sequence, uint64_t uuid,
                             const Message& described)
    : trace_(trace), sequence_(sequence) {
  const Message boot = Message().number(1, kBootClock).number(2, 0);
  const Message own = Message().number(1, kOwnClock).number(2, 0).number(3, 1);
  const Message defaults = Message()
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

void PerfettoTrack::add(const PerfettoSlice& slice) {
  close_until(slice.start);
  Message fresh;
  Message begun =
      Message()
          .number(event::kType, event::kBegin)
          .number(event::kCategory, id(categories_, slice.category, interned::kCategories, fresh))
          .number(event::kName, id(names_, slice.name, interned::kNames, fresh));
  if (slice.payload > 0)
    begun.message(
        event::kAnnotation,
        Message()
            .number(annotation::kNameId, id(units_, slice.unit, interned::kAnnotationNames, fresh))
            .number(annotation::kUint, slice.payload));
  write(slice.start, begun, fresh);
  const int64_t end = std::max(slice.start, slice.end);
  open_.push_back(open_.empty() ? end : std::min(end, open_.back()));
}

void PerfettoTrack::close() { close_until(INT64_MAX); }

void PerfettoTrack::close_until(int64_t time) {
  for (; !open_.empty() && open_.back() <= time; open_.pop_back())
    write(open_.back(), Message().number(event::kType, event::kEnd), {});
}

// Returns the id of a text. Adds its definition to `fresh` if the sequence has not used it yet.
uint64_t PerfettoTrack::id(Ids& ids, std::string_view text, uint32_t field, Message& fresh) {
  if (const auto known = ids.find(text); known != ids.end()) return known->second;
  const uint64_t next = ids.size() + 1;
  ids.emplace(text, next);
  fresh.message(field, Message().number(interned::kId, next).text(interned::kText, text));
  return next;
}

void PerfettoTrack::write(int64_t time, const Message& what, const Message& fresh) {
  Message one;
  one.number(packet::kTimestamp, static_cast<uint64_t>(time - last_))
      .number(packet::kSequence, sequence_)
      .number(packet::kFlags, packet::kNeedsState)
      .message(packet::kTrackEvent, what);
  if (!fresh.bytes().empty()) one.message(packet::kInterned, fresh);
  add_packet(trace_, one);
  last_ = time;
}

PerfettoGroup::PerfettoGroup(std::string& trace, uint64_t id, int part)
    : trace_(trace),
      uuid_((id * kMix & ~uint64_t{UINT32_MAX}) | 1),
      first_(static_cast<uint64_t>(part) * kMaxTracks) {}

void PerfettoGroup::describe(const std::string& name) {
  add_packet(trace_, Message()
                         .number(packet::kSequence, 1)
                         .message(packet::kTrackDescriptor, parent(uuid_, name)));
}

PerfettoTrack PerfettoGroup::next(const std::string& name, uint64_t above) {
  const uint64_t number = ++tracks_, uuid = uuid_ + first_ + number;
  const bool below_group = above == 0 || above == number;
  const Message described =
      parent(uuid, name)
          .number(track::kParent, below_group ? uuid_ : uuid_ + first_ + above)
          .number(track::kRank, first_ + number);
  return {trace_, tracks_ + 1, uuid, described};
}

}  // namespace howmany
