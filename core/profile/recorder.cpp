#include "core/profile/recorder.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "core/profile/recorder_hooks.h"

namespace howmany {

constinit std::atomic<uint64_t> running_recording = 0;

namespace {

// One thread's spans in one recording. That thread alone writes; a span is there once size says so.
struct Lane {
  Lane(RecordedThread whose, size_t room)
      : thread(std::move(whose)), spans(std::make_unique<Span[]>(room)), capacity(room) {}

  RecordedThread thread;
  std::unique_ptr<Span[]> spans;
  size_t capacity;
  std::atomic<size_t> size = 0;
  std::atomic<int64_t> begun = 0, dropped = 0;
};

struct Recorder {
  std::mutex mutex;
  uint64_t last = 0;  // number of the latest recording
  RecorderOptions options;
  int64_t start = 0;
  std::vector<std::shared_ptr<Lane>> lanes;
};

Recorder& recorder() {  // never destroyed: threads may still end ranges while the process ends
  static auto* const only = new Recorder;
  return *only;
}

struct Mine {
  uint64_t recording = 0;      // that `lane` is of
  std::shared_ptr<Lane> lane;  // shared, as either may outlive the other
  int track = -1;
  const char* role = "";
};
thread_local Mine mine;

// A lane holds the memory it may need from the start, so that no page is taken while steps run.
void join_recording(uint64_t recording) {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  mine.recording = recording;
  mine.lane = nullptr;
  if (running_recording != recording) return;
  const RecordedThread who{gettid(), mine.track, mine.role};
  mine.lane = r.lanes.emplace_back(std::make_shared<Lane>(who, r.options.spans_per_thread));
}

// The child has this thread only, and its lane would be nobody's.
void record_nothing_in_children() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { running_recording = 0; });
  HM_ENSURE(registered == 0, "[profile] pthread_atfork: error {}", registered);
}

void add_spans(Recording& all, const Lane& lane) {
  const auto thread = static_cast<uint32_t>(all.threads.size());
  const size_t size = lane.size.load(std::memory_order_acquire);
  const auto first = static_cast<ptrdiff_t>(all.spans.size());
  // What ends last comes first, so that of two with the same times the outer one stays first.
  for (size_t i = size; i > 0; --i) {
    all.spans.push_back(lane.spans[i - 1]);
    all.spans.back().thread = thread;
  }
  std::stable_sort(all.spans.begin() + first, all.spans.end(), [](const Span& a, const Span& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
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
  if (!mine.lane) return false;
  // One writer: no read-modify-write is needed.
  std::atomic<int64_t>& begun = mine.lane->begun;
  begun.store(begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return true;
}

void keep_span(uint64_t recording, const Span& span) {
  if (mine.recording != recording || !mine.lane) return;
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
  r.start = profile_clock_ns();
  running_recording = ++r.last;
}

Recording stop_recording() {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  if (running_recording == 0) return {};
  running_recording = 0;
  Recording all{.start = r.start, .end = profile_clock_ns()};
  for (const auto& lane : r.lanes) add_spans(all, *lane);
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
