// SPDX-License-Identifier: Apache-2.0
#include "core/profile/recorder.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <mutex>
#include <span>

#include "core/base/error.h"
#include "core/profile/recorder_hooks.h"
#include "core/profile/ticks.h"

namespace howmany {

constinit std::atomic<uint64_t> running_recording = 0;

namespace {

// One thread's spans in one recording. Only that thread writes. A span is valid once `size` counts
// it.
struct Lane {
  Lane(RecordedThread whose, size_t room)
      : thread(std::move(whose)), spans(std::make_unique<Span[]>(room)), capacity(room) {}

  RecordedThread thread;
  std::unique_ptr<Span[]> spans;
  size_t capacity;
  std::atomic<size_t> size = 0;
  std::atomic<int64_t> begun = 0, dropped = 0;
};

// Both clocks at one point in time.
struct Moment {
  int64_t ticks = 0, ns = 0;
};

Moment now() {
  Moment best;
  int64_t nearest = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    const int64_t before = ticks(), ns = profile_clock_ns(), took = ticks() - before;
    if (took < nearest) best = {before + took / 2, ns};
    nearest = std::min(nearest, took);
  }
  return best;
}

struct Recorder {
  std::mutex mutex;
  uint64_t last = 0;  // number of the latest recording
  RecorderOptions options;
  Moment start;
  std::vector<std::shared_ptr<Lane>> lanes;
};

Recorder& recorder() {  // never destroyed: threads may end ranges while the process exits
  static auto* const only = new Recorder;
  return *only;
}

// Needs no destructor, so that access takes one instruction.
struct Mine {
  uint64_t recording = 0;  // the recording of `lane`
  Lane* lane = nullptr;
  int track = -1;
  const char* role = "";
};
constinit thread_local Mine mine;
thread_local std::shared_ptr<Lane>
    my_lane;  // shared: either the thread or the recording may end first

// A lane allocates its memory at once, so that steps do not allocate.
void join_recording(uint64_t recording) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  mine.recording = recording;
  my_lane = nullptr;
  if (running_recording == recording) {
    const RecordedThread who{gettid(), mine.track, mine.role};
    my_lane = r.lanes.emplace_back(std::make_shared<Lane>(who, r.options.spans_per_thread));
  }
  mine.lane = my_lane.get();
}

// A forked child has only this thread, and nothing would read its lane.
void record_nothing_in_children() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { running_recording = 0; });
  HM_ENSURE(registered == 0, "[profile] pthread_atfork: error {}", registered);
}

// Converts ticks to profile_clock_ns(). The clock readings are accurate to about 10 ns, so results
// are clamped to the recording.
class OurClock {
 public:
  OurClock(Moment start, Moment end) : start_(start), end_(end) {
    const auto theirs = static_cast<double>(end.ticks - start.ticks);
    rate_ = theirs > 0 ? static_cast<double>(end.ns - start.ns) / theirs : 1;
  }
  int64_t operator()(int64_t at) const {
    const auto since = static_cast<int64_t>(static_cast<double>(at - start_.ticks) * rate_);
    return std::clamp(start_.ns + since, start_.ns, end_.ns);
  }

 private:
  Moment start_, end_;
  double rate_;
};

bool comes_first(const Span& a, const Span& b) {
  return a.start != b.start ? a.start < b.start : a.end > b.end;
}

// Sorts spans, which were added in the order in which they ended. Without nesting they are already
// sorted. If two have equal times, the outer one ended last.
void put_in_order(std::vector<Span>::iterator first, std::vector<Span>::iterator last) {
  const auto not_before = [](const Span& a, const Span& b) { return !comes_first(a, b); };
  if (std::adjacent_find(first, last, not_before) == last) return;
  std::reverse(first, last);
  std::stable_sort(first, last, comes_first);
}

void add_spans(Recording& all, const Lane& lane, const OurClock& ours) {
  const auto thread = static_cast<uint32_t>(all.threads.size());
  const size_t size = lane.size.load(std::memory_order_acquire);
  const auto first = static_cast<ptrdiff_t>(all.spans.size());
  all.spans.insert(all.spans.end(), lane.spans.get(), lane.spans.get() + size);
  put_in_order(all.spans.begin() + first, all.spans.end());  // by ticks, the finer unit
  for (Span& span : std::span(all.spans).subspan(static_cast<size_t>(first))) {
    span.start = ours(span.start);
    span.end = ours(span.end);
    span.thread = thread;
  }
  const int64_t dropped = lane.dropped.load();
  all.threads.push_back(lane.thread);
  all.dropped += dropped;
  all.open += std::max<int64_t>(0, lane.begun.load() - dropped - static_cast<int64_t>(size));
}

}  // namespace

int64_t profile_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool enter_recording(uint64_t recording) {
  if (mine.recording != recording) join_recording(recording);
  if (mine.lane == nullptr) return false;
  // There is one writer, so no read-modify-write is needed.
  std::atomic<int64_t>& begun = mine.lane->begun;
  begun.store(begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

void keep_span(uint64_t recording, const Span& span) {
  if (mine.recording != recording || mine.lane == nullptr) return;
  Lane& lane = *mine.lane;
  const size_t at = lane.size.load(std::memory_order_relaxed);
  if (at == lane.capacity) {
    lane.dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  lane.spans[at] = span;
  lane.size.store(at + 1, std::memory_order_release);
}

void start_recording(const RecorderOptions& options) {
  record_nothing_in_children();
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  HM_REQUIRE(running_recording == 0, "[profile] a recording is running already");
  r.options = options;
  r.start = now();
  running_recording = ++r.last;
}

Recording stop_recording() {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  if (running_recording == 0) return {};
  running_recording = 0;
  const Moment end = now();
  Recording all{.start = r.start.ns, .end = end.ns};
  for (const auto& lane : r.lanes) add_spans(all, *lane, OurClock(r.start, end));
  r.lanes.clear();
  return all;
}

TrackScope::TrackScope(int track, const char* role) : track_(mine.track), role_(mine.role) {
  mine.track = track;
  mine.role = role;
}

TrackScope::~TrackScope() {
  mine.track = track_;
  mine.role = role_;
}

int current_track() { return mine.track; }

}  // namespace howmany
