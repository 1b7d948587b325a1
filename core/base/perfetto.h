// SPDX-License-Identifier: Apache-2.0
// Writes tracks of a trace in Perfetto's format, for ui.perfetto.dev and trace_processor. One
// thread. Tracks of a trace are written one after the other.
//
//   std::string trace;
//   PerfettoGroup group(trace, 1);
//   group.describe("ddp/mlp, 2 devices");
//   PerfettoTrack rank = group.next("rank 0");
//   rank.add({0, 900, "step", "step 0"});
//   rank.add({100, 300, "compute", "linear"});
//   rank.close();
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/protobuf.h"

namespace howmany {

struct PerfettoSlice {
  int64_t start = 0, end = 0;  // nanoseconds, 0 or more
  std::string_view category, name;
  std::string_view unit = "bytes";
  uint64_t payload = 0;  // in `unit`; 0: none
};

class PerfettoTrack {
 public:
  // Slices must be added in the order of their starts, an outer one before its inner ones. The end
  // of an inner slice is at most that of the outer one.
  void add(const PerfettoSlice& slice);
  // Ends the slices. No slice may follow.
  void close();

 private:
  friend class PerfettoGroup;
  using Ids = std::map<std::string, uint64_t, std::less<>>;

  PerfettoTrack(std::string& trace, uint32_t sequence, uint64_t uuid,
                const ProtobufMessage& described);
  static uint64_t id(Ids& ids, std::string_view text, uint32_t field, ProtobufMessage& fresh);
  void close_until(int64_t time);
  void write(int64_t time, const ProtobufMessage& what, const ProtobufMessage& fresh);

  std::string& trace_;
  const uint32_t sequence_;
  int64_t last_ = 0;
  Ids categories_, names_, units_;
  std::vector<int64_t> open_;  // the ends
};

// Numbers its tracks from 1.
class PerfettoGroup {
 public:
  // `id`: unique in the file. A group may be written in parts, such as one for each process.
  PerfettoGroup(std::string& trace, uint64_t id, int part = 0);
  // Names the group. For one of its parts.
  void describe(const std::string& name);
  // Adds a track below the track of that number, or below the group if `above` is 0 or the number
  // of the new track.
  PerfettoTrack next(const std::string& name, uint64_t above = 0);

 private:
  std::string& trace_;
  const uint64_t uuid_, first_;
  uint32_t tracks_ = 0;
};

}  // namespace howmany
