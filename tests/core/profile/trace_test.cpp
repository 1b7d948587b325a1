// SPDX-License-Identifier: Apache-2.0
#include "core/profile/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/perfetto_viewer.h"
#include "tests/support/tensors.h"

namespace howmany {
namespace {

using testing_support::Slice;
using testing_support::Viewer;

Recording example() {
  Recording r;
  r.start = 1'000'000;
  r.threads = {{.id = 41, .track = 0, .role = "rank"},
               {.id = 42, .track = 0, .role = "communication"},
               {.id = 43}};
  const auto add = [&](uint32_t thread, Category category, const char* name, int64_t start,
                       int64_t end, uint64_t payload = 0) {
    r.spans.push_back({name, payload, r.start + start, r.start + end, thread, category});
  };
  add(0, Category::step, "it", 100, 900);
  add(0, Category::compute, "linear", 100, 300, 1ULL << 40);
  add(0, Category::compute, "linear", 300, 500);
  add(0, Category::copy, "copy", 350, 500, 7);
  add(1, Category::comm, "all_reduce", 250, 800, 4096);
  return r;
}

TEST(Trace, HasEverySpanOnTheTrackOfItsThread) {
  const Viewer seen(perfetto_trace(example(), {"ddp/mlp"}));
  ASSERT_EQ(seen.slices.size(), 5u);
  const auto check = [&](size_t i, const char* track, const char* category, const char* name,
                         int64_t start, int64_t end, uint64_t payload, size_t depth) {
    const Slice& s = seen.slices[i];
    EXPECT_EQ(s.track, track) << i;
    EXPECT_EQ(s.category, category) << i;
    EXPECT_EQ(s.name, name) << i;
    EXPECT_EQ(s.start, start) << i;
    EXPECT_EQ(s.end, end) << i;
    EXPECT_EQ(s.payload, payload) << i;
    EXPECT_EQ(s.depth, depth) << i;
  };
  check(0, "rank 0", "step", "it", 100, 900, 0, 0);
  check(1, "rank 0", "compute", "linear", 100, 300, 1ULL << 40, 1);
  check(2, "rank 0", "compute", "linear", 300, 500, 0, 1);
  check(3, "rank 0", "copy", "copy", 350, 500, 7, 2);
  check(4, "communication of rank 0", "comm", "all_reduce", 250, 800, 4096, 0);
}

TEST(Trace, GroupsItsTracksUnderTheNameGiven) {
  const Viewer seen(perfetto_trace(example(), {"ddp/mlp"}));
  std::vector<std::string> groups, tracks;
  for (const auto& [uuid, track] : seen.tracks) {
    if (track.second == 0)
      groups.push_back(track.first);
    else
      tracks.push_back(seen.tracks.at(track.second).first + ": " + track.first);
  }
  EXPECT_THAT(groups, testing::ElementsAre("ddp/mlp"));
  EXPECT_THAT(tracks,
              testing::UnorderedElementsAre("ddp/mlp: rank 0", "rank 0: communication of rank 0",
                                            "ddp/mlp: thread 43"));
}

TEST(Trace, JoinedFilesKeepTheirTracksApart) {
  Recording later = example();
  later.start += 50;
  for (Span& span : later.spans) span.start += 50, span.end += 50;
  const Viewer seen(perfetto_trace(example(), {"first"}) + perfetto_trace(later, {"second"}));
  EXPECT_EQ(seen.tracks.size(), 8u);
  ASSERT_EQ(seen.slices.size(), 10u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(seen.slices[i].start, seen.slices[i + 5].start);
}

// As with one process per rank, whose clocks differ.
TEST(Trace, PartsOfAGroupShareItsNameAndItsTime) {
  Recording second = example();
  const int64_t ahead = 1'000'000'000;
  second.start += ahead + 30;
  for (Span& span : second.spans) span.start += ahead + 30, span.end += ahead + 30;
  for (RecordedThread& thread : second.threads) thread.track = 1;
  const int64_t origin = example().start;
  const std::string first = perfetto_trace(example(), {"ddp", 5, 0, origin});
  const Viewer seen(first + perfetto_trace(second, {"ddp", 5, 1, origin + ahead, " (to 3 us)"}));
  std::vector<std::string> tracks;
  for (const auto& [uuid, track] : seen.tracks)
    tracks.push_back((track.second == 0 ? "" : seen.tracks.at(track.second).first + ": ") +
                     track.first);
  EXPECT_THAT(tracks, testing::UnorderedElementsAre(
                          "ddp", "ddp: rank 0", "rank 0: communication of rank 0", "ddp: thread 43",
                          "ddp: rank 1 (to 3 us)", "rank 1 (to 3 us): communication of rank 1",
                          "rank 1 (to 3 us): thread 43 of rank 1"));
  ASSERT_EQ(seen.slices.size(), 10u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(seen.slices[i].start + 30, seen.slices[i + 5].start);
}

TEST(Trace, HasATrackForEachStreamAndAnotherForWhatOverlapsThere) {
  GpuActivity gpus;
  const auto add = [&](const char* name, uint32_t stream, int64_t start, int64_t end,
                       Category category = Category::step) {
    gpus.spans.push_back({.name = name,
                          .device = 1,
                          .stream = stream,
                          .start = start + 1000,
                          .end = end + 1000,
                          .category = category});
  };
  add("late", 7, 200, 300, Category::comm);
  add("early", 7, 100, 200);
  add("beside", 7, 150, 250);
  add("other", 8, 150, 250);
  gpus.spans.back().track = 0;  // a rank of which nothing else was recorded
  Recording none;
  none.start = 1000;
  const Viewer seen(perfetto_trace(none, {"gpu"}, gpus));
  std::vector<std::string> told;
  for (const Slice& s : seen.slices)
    told.push_back(s.track + ": " + s.category + " " + s.name + " " + std::to_string(s.start) +
                   " " + std::to_string(s.end));
  EXPECT_THAT(told, testing::ElementsAre("cuda:1 stream 7: kernel early 100 200",
                                         "cuda:1 stream 7: comm late 200 300",
                                         "cuda:1 stream 7: kernel beside 150 250",
                                         "cuda:1 stream 8: kernel other 150 250"));
}

TEST(Trace, OfNothingIsAGroupWithoutTracks) {
  const Viewer seen(perfetto_trace({}, {"nothing"}));
  EXPECT_EQ(seen.tracks.size(), 1u);
  EXPECT_THAT(seen.slices, testing::IsEmpty());
}

// Random nested ranges: divides the interval, and may divide each piece again.
void nest(Recording& r, std::mt19937& random, int64_t begin, int64_t end, int depth) {
  const char* const names[] = {"a", "b", "c"};
  while (begin < end && depth > 0) {
    const int64_t start = begin + static_cast<int64_t>(random() % 20);
    const int64_t stop = std::min(end, start + 1 + static_cast<int64_t>(random() % 600));
    if (start >= stop) return;
    r.spans.push_back({names[random() % 3], random() % 3, start, stop, 0, Category::compute});
    nest(r, random, start, stop, depth - 1);
    begin = stop;
  }
}

TEST(Trace, EverySliceOfARandomTimelineEndsWhenItsSpanDidInAFewBytes) {
  std::mt19937 random(7);
  Recording r;
  r.threads = {{.id = 1}};
  nest(r, random, 0, 1'000'000, 4);
  const std::string trace = perfetto_trace(r, {"random"});
  const Viewer seen(trace);
  ASSERT_EQ(seen.slices.size(), r.spans.size());
  ASSERT_GT(r.spans.size(), 1000u);
  for (size_t i = 0; i < r.spans.size(); ++i) {
    EXPECT_EQ(seen.slices[i].start, r.spans[i].start);
    EXPECT_EQ(seen.slices[i].end, r.spans[i].end);
    EXPECT_EQ(seen.slices[i].name, r.spans[i].name);
  }
  EXPECT_LE(trace.size(), 2 * 25 * r.spans.size()) << "25 bytes for a begin or an end";
}

TEST(Trace, ThatMustBeShortKeepsWhatBeganFirst) {
  std::mt19937 random(testing_support::fresh_seed());
  Recording r;
  r.threads = {{.id = 1}};
  r.end = 1'000'000;
  nest(r, random, 0, r.end, 4);
  GpuActivity gpus;
  for (int64_t at = 0; at < r.end; at += 1000)
    gpus.spans.push_back({.name = "k", .start = at, .end = at + 10});
  const size_t whole = perfetto_trace(r, {"whole"}, gpus).size(), spans = r.spans.size();
  EXPECT_EQ(perfetto_trace_within(whole, r, {"whole"}, gpus).size(), whole);
  const std::string half = perfetto_trace_within(whole - 1, r, {"whole"}, gpus);
  EXPECT_LT(half.size(), whole);
  EXPECT_GT(r.spans.size(), spans / 4);
  EXPECT_EQ(Viewer(half).slices.size(), r.spans.size() + gpus.spans.size());
  for (const Span& span : r.spans) EXPECT_LT(span.start, r.end / 2);
  EXPECT_EQ(gpus.spans.size(), 500u);
  const std::string names = perfetto_trace_within(1, r, {"whole"}, gpus);
  EXPECT_EQ(r.spans.size() + gpus.spans.size(), 0u);
  EXPECT_EQ(Viewer(names).tracks.size(), 2u);
}

}  // namespace
}  // namespace howmany
