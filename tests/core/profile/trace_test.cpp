// SPDX-License-Identifier: Apache-2.0
#include "core/profile/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string_view>

#include "tests/support/tensors.h"

namespace howmany {
namespace {

// A decoded protobuf message: field number to values, which are numbers or bytes.
struct Fields {
  std::multimap<uint64_t, uint64_t> numbers;
  std::multimap<uint64_t, std::string_view> texts;

  explicit Fields(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t key = varint(bytes), value = varint(bytes);
      if (key % 8 == 0) {
        numbers.emplace(key / 8, value);
      } else {
        EXPECT_EQ(key % 8, 2u);
        EXPECT_LE(value, bytes.size());
        texts.emplace(key / 8, bytes.substr(0, value));
        bytes.remove_prefix(std::min<size_t>(value, bytes.size()));
      }
    }
  }
  static uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0; !bytes.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes.front());
      bytes.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  uint64_t number(uint64_t field) const {
    const auto found = numbers.find(field);
    return found == numbers.end() ? 0 : found->second;
  }
  std::string text(uint64_t field) const {
    const auto found = texts.find(field);
    return found == texts.end() ? "" : std::string(found->second);
  }
};

// A trace as a viewer shows it.
struct Slice {
  std::string track, category, name;
  int64_t start = 0, end = -1;
  uint64_t payload = 0;
  size_t depth = 0;
};

struct Viewer {
  struct Sequence {
    std::map<uint64_t, std::string> categories, names, units;
    uint64_t track = 0;
    int64_t time = 0;
    bool clear = false;
    std::vector<size_t> open;
  };
  std::map<uint64_t, std::pair<std::string, uint64_t>> tracks;  // uuid -> name and parent
  std::map<uint64_t, Sequence> sequences;
  std::vector<Slice> slices;

  explicit Viewer(std::string_view trace) {
    const Fields all(trace);
    for (const auto& [field, bytes] : all.texts) {
      EXPECT_EQ(field, 1u);
      add(Fields(bytes));
    }
  }

  static void learn(const Fields& told, uint64_t field, std::map<uint64_t, std::string>& names) {
    const auto [first, last] = told.texts.equal_range(field);
    for (auto it = first; it != last; ++it) {
      const Fields one(it->second);
      EXPECT_FALSE(names.contains(one.number(1))) << "sent twice";
      names[one.number(1)] = one.text(2);
    }
  }

  void add(const Fields& packet) {
    Sequence& sequence = sequences[packet.number(10)];
    if (packet.number(13) == 1) {
      sequence = {};
      sequence.clear = true;
      sequence.track = Fields(Fields(packet.text(59)).text(11)).number(11);
    }
    if (const std::string d = packet.text(60); !d.empty()) {
      const Fields described(d);
      tracks[described.number(1)] = {described.text(2), described.number(5)};
    }
    const std::string told = packet.text(12);
    learn(Fields(told), 1, sequence.categories);
    learn(Fields(told), 2, sequence.names);
    learn(Fields(told), 3, sequence.units);
    if (const std::string event = packet.text(11); !event.empty()) {
      EXPECT_TRUE(sequence.clear);
      EXPECT_EQ(packet.number(13), 2u);
      sequence.time += static_cast<int64_t>(packet.number(8));
      add_event(Fields(event), sequence);
    }
  }

  void add_event(const Fields& event, Sequence& sequence) {
    if (event.number(9) == 2) {
      ASSERT_FALSE(sequence.open.empty()) << "ends what never began";
      slices[sequence.open.back()].end = sequence.time;
      sequence.open.pop_back();
      return;
    }
    const std::string annotation = event.text(4);
    slices.push_back({.track = tracks.at(sequence.track).first,
                      .category = sequence.categories.at(event.number(3)),
                      .name = sequence.names.at(event.number(10)),
                      .start = sequence.time,
                      .payload = Fields(annotation).number(3),
                      .depth = sequence.open.size()});
    sequence.open.push_back(slices.size() - 1);
  }
};

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
