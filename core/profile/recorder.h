// Records the Ranges of this process, of every thread, without any tool. Memory is bounded: what a
// thread has no room for is dropped and counted. Off, a Range costs what it costs anyway; on, two
// looks at the clock. A forked child records nothing. Thread-safe; one recording at a time.
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

int64_t profile_clock_ns();  // CLOCK_MONOTONIC, which all processes of a host share

struct Span {
  const char* name = "";
  uint64_t payload = 0;        // FLOP or bytes, as Range has it
  int64_t start = 0, end = 0;  // profile_clock_ns
  uint32_t thread = 0;         // index into Recording::threads
  Category category = Category::step;
};

struct RecordedThread {
  int64_t id = 0;         // as the operating system numbers it
  int track = -1;         // see TrackScope
  std::string role = "";  // "rank", "communication"
};

struct Recording {
  std::vector<Span> spans = {};  // by thread, then by start; an outer one before what it holds
  std::vector<RecordedThread> threads = {};
  int64_t start = 0, end = 0;
  int64_t dropped = 0;  // spans for which there was no room
  int64_t open = 0;     // begun, but not ended when the recording stopped
};

struct RecorderOptions {
  size_t spans_per_thread = size_t{1} << 16;  // 40 bytes each, taken at a thread's first range
};

// Throws std::invalid_argument when one is running.
void start_recording(const RecorderOptions& options = {});
// What ended since; ranges that go on are counted only. Empty when none is running.
Recording stop_recording();

// What this thread's ranges belong to, until destroyed: the rank whose step it works for. Threads
// that a rank starts take over its track. -1, where no scope is, is the process itself.
class TrackScope {
 public:
  TrackScope(int track, const char* role);  // role: a literal
  ~TrackScope();
  TrackScope(const TrackScope&) = delete;
  TrackScope& operator=(const TrackScope&) = delete;

 private:
  int track_;
  const char* role_;
};
int current_track();

}  // namespace howmany
