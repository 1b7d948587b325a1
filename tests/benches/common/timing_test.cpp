// SPDX-License-Identifier: Apache-2.0
#include "benches/common/timing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "benches/common/report.h"
#include "parallel/launch/launch.h"

namespace howmany::benches {
namespace {

TEST(MedianBounds, AreInfiniteForFiveSamples) {
  EXPECT_TRUE(std::isinf(median_bounds(std::vector<double>{1, 1, 1, 1, 1}).high));
  EXPECT_TRUE(std::isinf(median_bounds({}).high));
}

TEST(TimeIterations, StopsWhenTheBudgetIsSpent) {
  launch_threads(1, [](Comm& comm) {
    int calls = 0;
    const TimingOptions options{.budget_seconds = 0, .min_iterations = 3, .warmup_iterations = 2};
    const Samples samples = time_iterations(comm, options, [&] { ++calls; });
    EXPECT_EQ(calls, 5);
    EXPECT_EQ(samples.seconds.size(), 3u);
    EXPECT_FALSE(samples.converged);
  });
}

TEST(Fitting, LeavesWhatIsAskedForWhereThereIsTime) {
  const auto rest = fitting({.budget_seconds = 10}, 0.5);
  ASSERT_TRUE(rest);
  EXPECT_EQ(std::tuple(rest->warmup_iterations, rest->min_iterations, rest->max_iterations),
            std::tuple(1, 6, 10'000));
  EXPECT_DOUBLE_EQ(rest->budget_seconds, 9.5);
}

TEST(Fitting, TakesAsFewIterationsAsTheBudgetHolds) {
  for (const auto& [budget, fit] : {std::pair{2.0, 1}, {3.5, 2}, {6.5, 5}}) {
    const auto rest = fitting({.budget_seconds = budget}, 1);
    ASSERT_TRUE(rest) << budget;
    EXPECT_EQ(std::tuple(rest->warmup_iterations, rest->min_iterations, rest->max_iterations),
              std::tuple(0, fit, fit))
        << budget;
  }
}

TEST(Fitting, TellsWhereNotOneMoreFits) {
  EXPECT_FALSE(fitting({.budget_seconds = 1.9}, 1));
  EXPECT_FALSE(fitting({.budget_seconds = 0.1}, 1));
}

TEST(TimeIterations, StopsWhenTheIntervalIsTight) {
  launch_threads(1, [](Comm& comm) {
    const TimingOptions options{.budget_seconds = 1e9, .target_half_width = 1e9};
    const Samples samples = time_iterations(comm, options, [] {});
    EXPECT_TRUE(samples.converged);
    EXPECT_EQ(samples.seconds.size(), 6u);
  });
}

TEST(TimeIterations, EveryRankSeesTheSlowestAndStopsWithIt) {
  std::vector<std::vector<double>> seen(3);
  launch_threads(3, [&](Comm& comm) {
    const auto rank = static_cast<size_t>(comm.rank());
    // Rank 2 computes for a while; the others return at once.
    std::vector<double> own;
    seen[rank] = time_iterations(comm, {.min_iterations = 4, .max_iterations = 4}, [&] {
                   volatile double x = 0;
                   for (int i = 0; i < (comm.rank() == 2 ? 200'000 : 1); ++i) x = x + 1;
                 }).seconds;
  });
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  for (const double s : seen[0])
    EXPECT_GT(s, 20e-6);  // 200000 dependent additions cannot be faster
}

TEST(AppendSamples, WritesALineThatReadsBack) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("samples." + std::to_string(getpid()))).string();
  SampleLine line;  // assigned by member: GCC 12 reports a braced one as uninitialized
  line.name = "speedup/ddp";
  line.samples = {{0.5, 0.25}, true};
  line.flags = {"oversubscribed"};
  line.parameters = {{"mode", "ddp"}};
  line.world = 2;
  append_samples(path, line);
  append_samples(path, line);
  std::ifstream file(path);
  std::string text;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(std::getline(file, text));
    const auto json = nlohmann::json::parse(text);
    EXPECT_EQ(json["name"], "speedup/ddp");
    EXPECT_EQ(json["seconds"], (std::vector<double>{0.5, 0.25}));
    EXPECT_EQ(json["converged"], true);
    EXPECT_EQ(json["flags"][0], "oversubscribed");
    EXPECT_EQ(json["parameters"]["mode"], "ddp");
    EXPECT_EQ(json["world"], 2);
  }
  std::filesystem::remove(path);
}

TEST(AppendSamples, SaysWhichFileCannotBeWritten) {
  EXPECT_THROW(append_samples("/nowhere/samples.jsonl", {}), Error);
  EXPECT_NO_THROW(append_samples("", {}));
}

}  // namespace
}  // namespace howmany::benches
