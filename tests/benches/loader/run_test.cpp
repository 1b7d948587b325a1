// SPDX-License-Identifier: Apache-2.0
// Tests the measurement of loaders: counts, the page cache, and the removal of synthetic images.
#include "benches/loader/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "benches/loader/limits.h"
#include "benches/loader/page_cache.h"
#include "core/base/error.h"
#include "tests/support/image_files.h"

namespace howmany::benches {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

LoaderDataOptions painted() {
  return {.data = "synthetic", .size = 32, .most = 64, .images = 24, .width = 64, .height = 48};
}

LoaderRun brief() { return {.workers = 1, .batch = 4, .budget_s = 0.05}; }

TEST(LoaderRun, MemoryOfWorkersThatAreProcessesIsCountedToo) {
  const LoaderData data({.data = "cost:10"});
  LoaderRun run = brief();
  run.workers = 2;
  run.batch = 16;
  const double batch = 16.0 * static_cast<double>(data.sample_bytes());
  run.as = WorkersAs::processes;
  const double each = run_loader(data, run).bytes_per_worker;
  EXPECT_GT(each, 0.4 * batch);
#ifndef HM_SANITIZED  // the sanitizer uses memory of its own
  EXPECT_LT(each, 6 * batch);
#endif
}

TEST(LoaderData, PaintedImagesDecodeAndAreGoneAfterwards) {
  std::vector<FilePart> files;
  {
    const LoaderData data(painted());
    files = data.parts();
    EXPECT_EQ(files.size(), 24u);
    EXPECT_TRUE(data.bad().empty());
    EXPECT_EQ(data.sample_bytes(), 32 * 32 * 3 * 4 + 8);
    std::vector<float> x(32 * 32 * 3);
    int64_t y = -1;
    data.endless().get(23 + 24 * 1000, 1, x.data(), &y);
    EXPECT_EQ(data.stages().samples, 1);
    EXPECT_EQ(data.stages().pixels, 64 * 48);
    EXPECT_GT(data.stages().decode_s, 0);
  }
  for (const FilePart& file : files) EXPECT_FALSE(fs::exists(file.path));
}

TEST(LoaderData, AFolderIsThinnedEvenlyAndSaysHowManyItHas) {
  const testing_support::TempFolder folder;
  for (int i = 0; i < 20; ++i)
    folder.write((i % 2 == 0 ? "a/" : "b/") + std::to_string(10 + i) + ".jpg",
                 testing_support::jpeg_file(16, 16));
  folder.write("a/broken.jpg", "no image");
  const LoaderData data({.data = folder.path(), .size = 8, .most = 7});
  EXPECT_EQ(data.listed(), 21);
  EXPECT_LE(data.parts().size(), 7u);
  EXPECT_GE(data.parts().size(), 6u);  // the broken file may be among them
  EXPECT_THAT(data.parts().front().path, HasSubstr("/a/"));
  EXPECT_THAT(data.parts().back().path, HasSubstr("/b/"));
}

TEST(LoaderData, OfALargeFileAPartIsRead) {
  const testing_support::TempFolder folder;
  const std::string file = folder.write("a.u16", "");
  fs::resize_file(file, int64_t{4} << 30);  // sparse
  const LoaderData data({.data = file});
  EXPECT_GT(data.listed(), 3 * data.samples().size());
  EXPECT_GT(data.samples().size(), data.listed() / 5);
  ASSERT_EQ(data.parts().size(), 1u);
  EXPECT_LT(data.parts()[0].size, int64_t{2} << 30);
}

TEST(LoaderData, WhatCannotBeLoadedIsRefused) {
  for (const char* data : {"/nowhere", "cost:", "cost:x", "cost:-1", "cost:99999999999"})
    EXPECT_THROW(LoaderData({.data = data}), std::invalid_argument) << data;
}

TEST(LoaderRun, CountsTheSamplesOfAllRanks) {
  const LoaderData data({.data = "cost:100", .size = 4});
  for (const int ranks : {1, 2}) {
    LoaderRun run = brief();
    run.ranks = ranks;
    const LoaderResult result = run_loader(data, run);
    double total = 0;
    for (const double wait : result.waits) total += wait;
    EXPECT_EQ(static_cast<int64_t>(result.waits.size()), result.batches);
    EXPECT_GT(result.samples_per_s, 0);
    EXPECT_GE(result.blocks.seconds.size(), 2u);
    // All work is waiting, so the waits are nearly all of the time.
    EXPECT_GT(total, 0);
    EXPECT_GT(result.first_batch_s, 4 * 100e-6);
  }
}

TEST(LoaderRun, OneWorkerCannotBeFasterThanItsSamples) {
  const LoaderData data({.data = "cost:500", .size = 4});
  const LoaderResult result = run_loader(data, brief());
  EXPECT_LE(result.samples_per_s, 2000 * 1.5);
}

TEST(LoaderRun, TrainingThatIsSlowWaitsLessThanTrainingThatIsFast) {
  const LoaderData data({.data = "cost:300", .size = 4});
  LoaderRun slow = brief(), fast = brief();
  slow.demand = 100;
  fast.demand = 100'000;
  EXPECT_LT(run_loader(data, slow).stall_fraction, run_loader(data, fast).stall_fraction);
}

TEST(LoaderRun, AColdRunReadsEveryFileOnceAndHadNoneInMemory) {
  const LoaderData data(painted());
  LoaderRun run = brief();
  run.cold = true;
  try {
    const LoaderResult result = run_loader(data, run);
    EXPECT_LE(result.resident_before, 0.02);
    EXPECT_EQ(result.batches, 24 / 4 - 1);  // the first one only starts the measurement
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("not cold"));  // some file systems keep pages
  }
}

TEST(LoaderRun, AFailingSampleEndsEveryRank) {
  const testing_support::TempFolder folder;
  for (int i = 0; i < 8; ++i)
    folder.write("a/" + std::to_string(i) + ".jpg", testing_support::jpeg_file(16, 16));
  const LoaderData data({.data = folder.path(), .size = 8});
  for (const FilePart& file : data.parts()) fs::remove(file.path);
  LoaderRun run = brief();
  run.ranks = 2;
  EXPECT_THROW(run_loader(data, run), Error);
}

TEST(PageCache, WhatWasReadIsInMemoryAndWhatWasEvictedIsNot) {
  const testing_support::TempFolder folder;
  const std::vector<FilePart> files = {{folder.write("x", std::string(1 << 16, 'x')), 5000, 20000},
                                       {folder.write("empty", ""), 0, 0}};
  read_in(files);
  const auto warm = resident_fraction(files);
  if (!warm) GTEST_SKIP() << "the system does not tell";
  EXPECT_EQ(*warm, 1);
  evict(files);
  EXPECT_LE(*resident_fraction(files), 1);  // a file system in memory keeps its pages
  EXPECT_FALSE(resident_fraction({}));
  EXPECT_FALSE(resident_fraction({{folder / "gone", 0, 1}}));
  evict({{folder / "gone", 0, 1}});
  read_in({{folder / "gone", 0, 1}});
}

TEST(BlockMeans, AreOfEqualStretches) {
  EXPECT_EQ(block_means({1, 3, 5, 7, 100}, 2), (std::vector<double>{2, 6}));
  EXPECT_TRUE(block_means({1}, 2).empty());
  EXPECT_TRUE(std::isinf(relative_half_width({1})));
  EXPECT_EQ(relative_half_width({2, 2, 2}), 0);
  // mean 2, deviation 1, three values: 4.30 * 1 / sqrt(3) / 2
  EXPECT_NEAR(relative_half_width({1, 2, 3}), 1.2413, 1e-3);
}

TEST(LoaderLimits, AreAllThere) {
  const auto limits = describe_loader_limits();
  EXPECT_GT(limits["cores"].get<double>(), 0);
  EXPECT_GT(limits["memory_bytes"].get<double>(), 0);
  EXPECT_GT(limits["descriptors"].get<double>(), 0);
}

}  // namespace
}  // namespace howmany::benches
