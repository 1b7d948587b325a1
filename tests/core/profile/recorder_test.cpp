// SPDX-License-Identifier: Apache-2.0
// labels: threads
#include "core/profile/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <optional>
#include <set>
#include <thread>

namespace howmany {
namespace {

std::vector<std::string> names(const Recording& seen) {
  std::vector<std::string> list;
  for (const Span& span : seen.spans) list.emplace_back(span.name);
  return list;
}

TEST(Recorder, KeepsWhatARangeSaysAndWhenItWas) {
  const int64_t before = profile_clock_ns();
  start_recording();
  { const Range range(Category::copy, "a copy", 1ULL << 40); }
  const Recording seen = stop_recording();
  ASSERT_EQ(seen.spans.size(), 1u);
  const Span& span = seen.spans[0];
  EXPECT_STREQ(span.name, "a copy");
  EXPECT_EQ(span.category, Category::copy);
  EXPECT_EQ(span.payload, 1ULL << 40);
  EXPECT_LE(before, seen.start);
  EXPECT_LE(seen.start, span.start);
  EXPECT_LE(span.start, span.end);
  EXPECT_LE(span.end, seen.end);
}

TEST(Recorder, KeepsNothingWhenItIsOff) {
  { const Range early(Category::compute, "early"); }
  start_recording();
  stop_recording();
  { const Range late(Category::compute, "late"); }
  start_recording();
  EXPECT_THAT(stop_recording().spans, testing::IsEmpty());
  EXPECT_THAT(stop_recording().threads, testing::IsEmpty()) << "none was running";
}

TEST(Recorder, ASecondOneAtTheSameTimeIsRefused) {
  start_recording();
  EXPECT_THROW(start_recording(), std::invalid_argument);
  { const Range range(Category::compute, "still recorded"); }
  EXPECT_EQ(stop_recording().spans.size(), 1u);
}

TEST(Recorder, OuterRangesComeBeforeWhatTheyHold) {
  start_recording();
  {
    const Range a(Category::step, "a");
    { const Range b(Category::compute, "b"); }
    const Range c(Category::compute, "c");
    const Range d(Category::copy, "d");
  }
  EXPECT_THAT(names(stop_recording()), testing::ElementsAre("a", "b", "c", "d"));
}

TEST(Recorder, RangesThatCrossItsEndsAreNotKeptButThoseStillOpenAreCounted) {
  std::optional<Range> before(std::in_place, Category::step, "before");
  start_recording();
  before.reset();
  std::optional<Range> after(std::in_place, Category::step, "after");
  { const Range inside(Category::compute, "inside"); }
  const Recording seen = stop_recording();
  EXPECT_THAT(names(seen), testing::ElementsAre("inside"));
  EXPECT_EQ(seen.open, 1);
  start_recording();
  after.reset();
  EXPECT_THAT(stop_recording().spans, testing::IsEmpty()) << "it began in another recording";
}

TEST(Recorder, DropsAreCountedForEachThreadThatHadNoRoom) {
  start_recording({.spans_per_thread = 3});
  const auto seven = [] {
    for (int i = 0; i < 7; ++i) const Range range(Category::compute, "range");
  };
  seven();
  std::thread(seven).join();
  const Recording seen = stop_recording();
  EXPECT_EQ(seen.spans.size(), 6u);
  EXPECT_EQ(seen.dropped, 8);
  EXPECT_EQ(seen.open, 0);
}

TEST(Recorder, EveryThreadHasItsSpansAlsoWhenItIsGone) {
  constexpr int kThreads = 4, kRanges = 1000;
  start_recording();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([t] {
        const TrackScope track(t, "worker");
        for (int i = 0; i < kRanges; ++i) const Range range(Category::compute, "range");
      });
  }
  const Recording seen = stop_recording();
  EXPECT_EQ(seen.spans.size(), size_t{kThreads * kRanges});
  std::set<int> tracks;
  std::set<int64_t> ids;
  for (const RecordedThread& thread : seen.threads) {
    tracks.insert(thread.track);
    ids.insert(thread.id);
    EXPECT_EQ(thread.role, "worker");
  }
  EXPECT_THAT(tracks, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(ids.size(), size_t{kThreads});
  for (size_t i = 1; i < seen.spans.size(); ++i) {
    const Span &before = seen.spans[i - 1], &after = seen.spans[i];
    ASSERT_TRUE(before.thread != after.thread || before.end <= after.start) << i;
  }
}

TEST(Recorder, StartsAndStopsWhileOthersWork) {
  std::atomic<bool> done = false;
  std::latch working(3);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        working.count_down();
        while (!done) {
          const Range outer(Category::step, "outer");
          const Range inner(Category::compute, "inner");
        }
      });
    working.wait();
    for (int round = 0; round < 50; ++round) {
      start_recording({.spans_per_thread = 64});
      std::this_thread::yield();
      const Recording seen = stop_recording();
      for (const Span& span : seen.spans) {
        ASSERT_LE(seen.start, span.end);
        ASSERT_LE(span.start, span.end);
        ASSERT_LT(span.thread, seen.threads.size());
      }
    }
    done = true;
  }
}

TEST(Recorder, TracksNestAndEndWithTheirScope) {
  EXPECT_EQ(current_track(), -1);
  {
    const TrackScope outer(1, "rank");
    { const TrackScope inner(2, "rank"); }
    EXPECT_EQ(current_track(), 1);
  }
  EXPECT_EQ(current_track(), -1);
}

TEST(Recorder, AForkedChildGoesOnWithoutIt) {
  start_recording();
  const pid_t child = fork();
  if (child == 0) {
    { const Range range(Category::data, "in the child"); }
    _exit(stop_recording().spans.empty() ? 7 : 8);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  { const Range range(Category::data, "in the parent"); }
  EXPECT_THAT(names(stop_recording()), testing::ElementsAre("in the parent"));
}

}  // namespace
}  // namespace howmany
