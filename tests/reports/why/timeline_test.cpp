// SPDX-License-Identifier: Apache-2.0
#include "reports/why/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reports/examples.h"
#include "tests/support/perfetto_viewer.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::Slice;
using testing_support::Viewer;

constexpr double kHostClock = 1000.25;  // rank 1's, when rank 0's is 0

DetailStep step_of(double began) {
  DetailStep step;
  step.train = 0.010;
  step.began = began;
  step.spans = {{"backward", 0.004, 0.005}, {"blocked", 0.007, 0.002}, {"data", 0, 0.001}};
  step.buckets = {{1e6, 0.005, 0.007}, {25e6, 0.006, 0.009}};
  return step;
}

// Two ranks, the second on a host of another clock. `late`: that rank sees buckets end later.
StepEvidence two_hosts(double clock = kHostClock, double late = 0) {
  StepEvidence evidence;
  evidence.ranks.resize(2);
  for (const double began : {5.0, 5.1, 5.2}) {
    DetailStep second = step_of(began + clock);
    for (Bucket& bucket : second.buckets) bucket.ended += late * (began - 5.1);
    evidence.steps.push_back({Mode::kSynced, {step_of(began), second}});
  }
  return evidence;
}

std::vector<std::string> slices_of(const Viewer& seen, const std::string& track) {
  std::vector<std::string> all;
  for (const Slice& s : seen.slices)
    if (s.track == track && s.start < 50'000'000)
      all.push_back(s.name + " " + std::to_string(s.start / 1000) + " " +
                    std::to_string(s.end / 1000));
  return all;
}

TEST(Timeline, HasTheSpansAndBucketsOfARank) {
  const Viewer seen(timeline_group(two_hosts(), "ddp, 2 devices", 7));
  EXPECT_THAT(slices_of(seen, "rank 0"), ElementsAre("step 0 10000", "data 0 1000",
                                                     "backward 4000 9000", "blocked 7000 9000"));
  EXPECT_THAT(slices_of(seen, "buckets of rank 0"),
              ElementsAre("all-reduce 1 MB 5000 7000", "all-reduce 25 MB 7000 9000"));
  std::vector<std::string> tracks;
  for (const auto& [uuid, track] : seen.tracks)
    tracks.push_back((track.second == 0 ? "" : seen.tracks.at(track.second).first + ": ") +
                     track.first);
  EXPECT_EQ(tracks.size(), 5u);
  EXPECT_THAT(tracks, ::testing::IsSupersetOf({"ddp, 2 devices", "ddp, 2 devices: rank 0",
                                               "rank 0: buckets of rank 0"}));
}

TEST(Timeline, PutsRanksOfSeveralHostsOnOneClock) {
  const StepEvidence evidence = two_hosts(kHostClock, 0.002);
  const ClockShift shift = clock_shift(evidence, 1);
  EXPECT_NEAR(shift.seconds, kHostClock, 1e-9);
  EXPECT_NEAR(shift.deviation, 0.0002, 1e-9);
  const Viewer seen(timeline_group(evidence, "two hosts", 1));
  EXPECT_EQ(slices_of(seen, "rank 1 (clock to 200 us)"), slices_of(seen, "rank 0"));
}

TEST(Timeline, TrustsAClockThatAgreesWithinAMillisecond) {
  EXPECT_EQ(clock_shift(two_hosts(0.0009), 1).seconds, 0);
  EXPECT_NE(clock_shift(two_hosts(0.0011), 1).seconds, 0);
  const Viewer seen(timeline_group(two_hosts(0.0005), "one host", 1));
  EXPECT_THAT(slices_of(seen, "rank 1"), ::testing::Contains("step 500 10500"));
}

TEST(Timeline, TrustsTheClockOfABusyHost) {
  EXPECT_EQ(clock_shift(two_hosts(0.002, 0.004), 1).seconds, 0);
  EXPECT_NE(clock_shift(two_hosts(0.002, 0.002), 1).seconds, 0);
}

TEST(Timeline, NamesStepsOfOtherModes) {
  StepEvidence evidence = two_hosts(0);
  DetailStep alone;
  alone.began = 4.99;
  alone.train = 0.005;
  evidence.steps.push_back({Mode::kAlone, {alone, alone}});
  const Viewer seen(timeline_group(evidence, "ddp", 1));
  EXPECT_EQ(slices_of(seen, "rank 1").front(), "step of the rank alone 0 5000");
}

// As on a GPU.
TEST(Timeline, StepsThatTheHostBeginsEarlyFollowEachOther) {
  StepEvidence evidence = two_hosts(0);
  for (DetailStep& rank : evidence.steps[1].ranks) rank.began = 5.004;
  const Viewer seen(timeline_group(evidence, "ddp", 1));
  EXPECT_THAT(slices_of(seen, "buckets of rank 1"),
              ElementsAre("all-reduce 1 MB 5000 7000", "all-reduce 25 MB 7000 9000",
                          "all-reduce 1 MB 15000 17000", "all-reduce 25 MB 17000 19000"));
  for (const Slice& slice : seen.slices)
    EXPECT_EQ(slice.depth == 0, slice.name == "step" || slice.track.starts_with("buckets"));
}

TEST(Timeline, BucketsThatOverlapFollowEachOther) {
  StepEvidence evidence = two_hosts(0);
  for (DetailSteps& steps : evidence.steps)
    for (DetailStep& rank : steps.ranks) rank.buckets = {{2e6, 0.001, 0.008}, {1e6, 0.002, 0.003}};
  const Viewer seen(timeline_group(evidence, "ddp", 1));
  EXPECT_THAT(slices_of(seen, "buckets of rank 0"),
              ElementsAre("all-reduce 1 MB 2000 3000", "all-reduce 2 MB 3000 8000"));
}

TEST(Timeline, IsOfTheMostDevicesAndTheLastRound) {
  Plan plan;
  plan.request = example_request();
  const std::vector<Configuration> all = configurations(plan.request);
  const auto first_of = [&](int devices) {
    return static_cast<size_t>(std::ranges::find(all, devices, &Configuration::devices) -
                               all.begin());
  };
  const auto run = [&](int devices, int round, double train) {
    BenchRun one;
    one.configuration = first_of(devices);
    one.round = round;
    one.samples.json["why"] = {
        {"ranks", {{{"step_s", train}}}},
        {"steps", {{{"mode", "synced"}, {"ranks", {{{"train_s", train}, {"began_s", 9.0}}}}}}}};
    return one;
  };
  Results results;
  EXPECT_THAT(timeline(plan, results), IsEmpty());
  results.runs = {run(1, 0, 0.1), run(2, 1, 0.03), run(2, 0, 0.02)};
  const Viewer seen(timeline(plan, results));
  EXPECT_THAT(slices_of(seen, "rank 0"), ElementsAre("step 0 30000"));
  EXPECT_EQ(seen.tracks.begin()->second.first, describe(all[first_of(2)]));
}

}  // namespace
}  // namespace howmany::reports
