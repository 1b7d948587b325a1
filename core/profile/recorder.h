// SPDX-License-Identifier: Apache-2.0
// Records the Ranges of all threads of this process, without an external tool.
//
// Memory. Bounded: spans that exceed a thread's buffer are dropped and counted.
// Cost. Two clock reads per Range during a recording, nothing otherwise.
// Fork. A forked child records nothing.
// Thread safety. Thread-safe. One recording at a time.
//
//   start_recording();
//   ... steps ...
//   const Recording seen = stop_recording();
//   for (const StepUse& step : step_uses(seen, "iteration")) ...     // step_use.h
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/profile/range.h"

namespace howmany {

int64_t profile_clock_ns();  // CLOCK_MONOTONIC, which is common to all processes of a host

struct Span {
  const char* name = "";
  uint64_t payload = 0;        // FLOP or bytes, see Range
  int64_t start = 0, end = 0;  // profile_clock_ns
  uint32_t thread = 0;         // index into Recording::threads
  Category category = Category::step;
};

struct RecordedThread {
  int64_t id = 0;         // OS thread id
  int track = -1;         // see TrackScope
  std::string role = "";  // "rank", "communication"
};

struct Recording {
  std::vector<Span> spans = {};  // by thread, then by start; an outer span before its inner ones
  std::vector<RecordedThread> threads = {};
  int64_t start = 0, end = 0;
  int64_t dropped = 0;  // spans that did not fit
  int64_t open = 0;     // spans that had not ended when the recording stopped
};

struct RecorderOptions {
  size_t spans_per_thread = size_t{1} << 16;  // 40 bytes each, allocated at a thread's first range
};

// Throws std::invalid_argument if a recording is running.
void start_recording(const RecorderOptions& options = {});
// Returns the spans that ended since the start, and only the count of those that did not. Returns
// an empty recording if none is running.
Recording stop_recording();

// Assigns the ranges of this thread to a track until the scope ends: the rank that the thread works
// for. Threads that a rank starts must use its track. Without a scope the track is -1, the process
// itself.
class TrackScope {
 public:
  TrackScope(int track, const char* role);  // `role` must be a literal
  ~TrackScope();
  TrackScope(const TrackScope&) = delete;
  TrackScope& operator=(const TrackScope&) = delete;

 private:
  int track_;
  const char* role_;
};
int current_track();

}  // namespace howmany
