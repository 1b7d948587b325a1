// SPDX-License-Identifier: Apache-2.0
#include "core/profile/gpu_activity.h"

#include <gtest/gtest.h>

#include "core/gpu/gpu.h"

namespace howmany {
namespace {

using Kind = GpuSpan::Kind;

// Two threads: 100 belongs to rank 0, and 200 to rank 1.
Recording ranges() {
  Recording r;
  r.threads = {{.id = 100, .track = 0}, {.id = 200, .track = 1}};
  const auto add = [&](uint32_t thread, Category category, int64_t start, int64_t end) {
    r.spans.push_back({.start = start, .end = end, .thread = thread, .category = category});
  };
  add(0, Category::step, 0, 1000);
  add(0, Category::compute, 10, 500);
  add(0, Category::copy, 20, 30);
  add(0, Category::comm, 600, 700);
  add(1, Category::optimizer, 0, 1000);
  return r;
}

GpuSpan launched_by(int64_t thread, int64_t time) {
  GpuActivity activity;
  activity.calls = {{.correlation = 6, .thread = thread, .start = 1},
                    {.correlation = 7, .thread = thread, .start = time}};
  activity.spans = {{.correlation = 7}};
  join_ranges(activity, ranges());
  return activity.spans[0];
}

TEST(GpuActivity, BelongsToTheInnermostRangeThatWasOpenWhenItWasLaunched) {
  EXPECT_EQ(launched_by(100, 15).category, Category::compute);
  EXPECT_EQ(launched_by(100, 25).category, Category::copy);
  EXPECT_EQ(launched_by(100, 30).category, Category::compute) << "its end is not in it";
  EXPECT_EQ(launched_by(100, 499).category, Category::compute);
  EXPECT_EQ(launched_by(100, 600).category, Category::comm);
  EXPECT_EQ(launched_by(100, 550).category, Category::step) << "in none but the step";
  EXPECT_EQ(launched_by(100, 5000).category, Category::step);
}

TEST(GpuActivity, BelongsToTheRankWhoseThreadLaunchedIt) {
  EXPECT_EQ(launched_by(100, 550).track, 0);
  EXPECT_EQ(launched_by(200, 550).track, 1);
  EXPECT_EQ(launched_by(200, 550).category, Category::optimizer);
  EXPECT_EQ(launched_by(300, 550).track, -1) << "of a thread that had no ranges";
}

TEST(GpuActivity, OfNcclIsCommunicationOfWhoeverUsesThatGpu) {
  GpuActivity activity;
  activity.calls = {{.correlation = 1, .thread = 200, .start = 5}};
  activity.spans = {{.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)",
                     .device = 3,
                     .correlation = 9},
                    {.name = "howmany::kernel()", .device = 3, .correlation = 1}};
  join_ranges(activity, ranges());
  EXPECT_EQ(activity.spans[0].category, Category::comm);
  EXPECT_EQ(activity.spans[0].track, 1);
  EXPECT_EQ(activity.spans[1].category, Category::optimizer);
}

TEST(GpuActivity, OfAnUnknownCallBelongsToNobody) {
  GpuActivity activity;
  activity.spans = {{.correlation = 7}};
  join_ranges(activity, ranges());
  EXPECT_EQ(activity.spans[0].category, Category::step);
  EXPECT_EQ(activity.spans[0].track, -1);
}

TEST(GpuActivity, KernelsOfOneGraphShareTheCallThatLaunchedIt) {
  GpuActivity activity;
  activity.calls = {{.correlation = 7, .thread = 100, .start = 650}};
  activity.spans = {{.correlation = 7}, {.correlation = 7}};
  join_ranges(activity, ranges());
  for (const GpuSpan& span : activity.spans) EXPECT_EQ(span.category, Category::comm);
}

TEST(GpuUse, PartsOfAStepAddUpAndWhatOverlapsCountsOnce) {
  GpuActivity activity;
  const auto add = [&](Kind kind, Category category, int64_t start, int64_t end, int track = 0) {
    activity.spans.push_back(
        {.kind = kind, .start = start, .end = end, .category = category, .track = track});
  };
  add(Kind::kernel, Category::compute, 100, 300);
  add(Kind::kernel, Category::optimizer, 250, 400);  // on another stream
  add(Kind::kernel, Category::comm, 350, 600);
  add(Kind::copy, Category::comm, 600, 620);  // staged
  add(Kind::copy, Category::data, 610, 700);
  add(Kind::fill, Category::step, 900, 1200);         // extends beyond the end of the step
  add(Kind::kernel, Category::compute, 700, 900, 1);  // another rank's
  const auto uses = gpu_uses(activity, {{.start = 0, .total = 1000}}, 0);
  ASSERT_EQ(uses.size(), 1u);
  EXPECT_EQ(uses[0].compute, 300);
  EXPECT_EQ(uses[0].comm, 220) << "400 to 620";
  EXPECT_EQ(uses[0].hidden_comm, 50);
  EXPECT_EQ(uses[0].copy, 180) << "620 to 700, 900 to 1000";
  EXPECT_EQ(uses[0].idle, 300);
}

TEST(GpuActivity, IsNotWatchedWhereThereIsNoGpuAndAWordSaysWhy) {
  if (gpu::count() > 0) GTEST_SKIP() << "there is one";
  EXPECT_NE(start_gpu_activity(), "");
  EXPECT_TRUE(stop_gpu_activity().spans.empty());
}

}  // namespace
}  // namespace howmany
