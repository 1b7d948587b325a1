// SPDX-License-Identifier: Apache-2.0
#include "core/profile/step_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "core/profile/time_slices.h"

namespace howmany {
namespace {

using C = Category;

// A thread's spans, in the order of the recorder.
struct Timeline {
  Recording recording;

  Timeline& thread(int track = -1) {
    recording.threads.push_back({.id = 1, .track = track});
    return *this;
  }
  Timeline& span(C category, const char* name, int64_t start, int64_t end) {
    const auto thread = static_cast<uint32_t>(recording.threads.size() - 1);
    recording.spans.push_back(
        {.name = name, .start = start, .end = end, .thread = thread, .category = category});
    return *this;
  }
  StepUse one() const { return step_uses(recording, "it").at(0); }
};

int64_t sum(const StepUse& u) {
  return u.compute + u.optimizer + u.comm + u.copy + u.data + u.host;
}

TEST(TimeSlices, UniteIfTheyOverlapOrTouch) {
  EXPECT_EQ(united({{5, 9}, {1, 2}, {2, 4}, {6, 7}, {8, 8}}), (TimeSlices{{1, 4}, {5, 9}}));
}

TEST(TimeSlices, WithoutCutsHolesAndEnds) {
  const TimeSlices all = {{0, 10}, {20, 30}, {40, 50}};
  EXPECT_EQ(without(all, {{-5, 2}, {4, 6}, {8, 22}, {29, 60}}),
            (TimeSlices{{2, 4}, {6, 8}, {22, 29}}));
  EXPECT_EQ(without(all, {}), all);
}

TEST(TimeSlices, LengthCountsOnlyTheWindow) {
  const TimeSlices all = {{0, 10}, {20, 30}, {40, 50}};
  EXPECT_EQ(length_within(all, 5, 45), 20);
  EXPECT_EQ(length_within(all, 10, 20), 0);
  EXPECT_EQ(length_within(all, -100, 100), 30);
}

TEST(StepUse, PartsOfAStepAddUp) {
  const StepUse use = Timeline()
                          .thread()
                          .span(C::step, "it", 100, 200)
                          .span(C::data, "data wait", 100, 110)
                          .span(C::step, "forward", 110, 150)
                          .span(C::compute, "linear", 112, 132)
                          .span(C::copy, "copy", 140, 143)
                          .span(C::comm, "all_reduce", 150, 165)
                          .span(C::optimizer, "sgd", 170, 190)
                          .one();
  EXPECT_EQ(use.total, 100);
  EXPECT_EQ(use.data, 10);
  EXPECT_EQ(use.compute, 20);
  EXPECT_EQ(use.copy, 3);
  EXPECT_EQ(use.comm, 15);
  EXPECT_EQ(use.optimizer, 20);
  EXPECT_EQ(use.host, 32);
}

TEST(StepUse, DividesHiddenAndExposedCommunication) {
  const StepUse use = Timeline()
                          .thread()
                          .span(C::step, "it", 0, 100)
                          .span(C::compute, "backward", 10, 60)
                          .span(C::optimizer, "sgd", 80, 95)
                          .thread()
                          .span(C::comm, "first bucket", 30, 50)
                          .span(C::comm, "last bucket", 55, 82)
                          .one();
  EXPECT_EQ(use.compute, 50);
  EXPECT_EQ(use.comm, 20) << "from 60 to 80";
  EXPECT_EQ(use.hidden_comm, 27);
  EXPECT_EQ(use.optimizer, 15);
  EXPECT_EQ(sum(use), use.total);
}

TEST(StepUse, ExcludesOtherRanks) {
  Timeline t;
  t.thread(0).span(C::step, "it", 0, 10).span(C::compute, "mine", 0, 4);
  t.thread(1).span(C::step, "it", 0, 12).span(C::compute, "theirs", 0, 9);
  t.thread(1).span(C::comm, "theirs", 0, 9);
  const auto uses = step_uses(t.recording, "it", 0);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].compute, 4);
  EXPECT_EQ(uses[0].comm, 0);
  EXPECT_THAT(step_uses(t.recording, "it", 7), testing::IsEmpty());
}

TEST(StepUse, RefusesAmbiguousSteps) {
  Timeline t;
  t.thread().span(C::step, "it", 0, 10);
  t.thread().span(C::step, "it", 0, 10);
  EXPECT_THROW(step_uses(t.recording, "it"), Error);
}

// Random nested ranges: divides the interval, and may divide each piece again.
void nest(Timeline& t, std::mt19937& random, int64_t begin, int64_t end, int depth) {
  while (begin < end && depth > 0) {
    const int64_t start = begin + static_cast<int64_t>(random() % 20);
    const int64_t stop = std::min(end, start + 1 + static_cast<int64_t>(random() % 60));
    if (start >= stop) return;
    t.span(static_cast<C>(2 + random() % 5), "x", start, stop);
    nest(t, random, start, stop, depth - 1);
    begin = stop;
  }
}

// Attributes each nanosecond separately.
StepUse naive(const Recording& r, int64_t begin, int64_t end) {
  StepUse use{.start = begin, .total = end - begin};
  for (int64_t t = begin; t < end; ++t) {
    std::vector<C> innermost(r.threads.size(), C::step);
    for (const Span& s : r.spans)
      if (s.category != C::step && s.start <= t && t < s.end) innermost[s.thread] = s.category;
    const auto in = [&](C c) { return std::ranges::count(innermost, c) > 0; };
    const bool computes = in(C::compute), optimizes = !computes && in(C::optimizer);
    const bool hidden = computes || optimizes, talks = in(C::comm);
    const bool copies = !hidden && !talks && in(C::copy);
    use.compute += computes;
    use.optimizer += optimizes;
    use.comm += talks && !hidden;
    use.hidden_comm += talks && hidden;
    use.copy += copies;
    use.data += !hidden && !talks && !copies && innermost[0] == C::data;
  }
  use.host = use.total - use.compute - use.optimizer - use.comm - use.copy - use.data;
  return use;
}

TEST(StepUse, EqualsTheCountOfEveryNanosecond) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    Timeline t;
    t.thread();
    for (const int64_t begin : {0, 300}) {
      t.span(C::step, "it", begin, begin + 250);
      nest(t, random, begin, begin + 250, 4);
    }
    for (int other = 0; other < 2; ++other) nest(t.thread(), random, 0, 600, 3);
    for (const StepUse& use : step_uses(t.recording, "it")) {
      const StepUse expected = naive(t.recording, use.start, use.start + use.total);
      EXPECT_EQ(use.compute, expected.compute) << seed;
      EXPECT_EQ(use.optimizer, expected.optimizer) << seed;
      EXPECT_EQ(use.comm, expected.comm) << seed;
      EXPECT_EQ(use.hidden_comm, expected.hidden_comm) << seed;
      EXPECT_EQ(use.copy, expected.copy) << seed;
      EXPECT_EQ(use.data, expected.data) << seed;
      EXPECT_EQ(use.host, expected.host) << seed;
      EXPECT_EQ(sum(use), use.total) << seed;
      EXPECT_GE(use.host, 0) << seed;
    }
  }
}

}  // namespace
}  // namespace howmany
