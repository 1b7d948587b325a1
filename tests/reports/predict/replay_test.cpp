// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/replay.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"

namespace howmany::reports {
namespace {

// Every size takes `seconds` on `devices`.
Cluster constant(double seconds) {
  Cluster c;
  c.name = "c";
  c.devices_per_node = 1024;
  c.node.all_reduce[2] = {{1, seconds}, {1e12, seconds * (1 + 1e-12)}};
  c.node.all_reduce[1024] = c.node.all_reduce[2];
  return c;
}

LoggedCollective bucket(double at, double seconds, int backward = 0) {
  return {Collective::kAllReduce, 1e6, 64, 1, at, seconds, backward, {}};
}

LoggedCollective waited(double at, double seconds, double from) {
  return {Collective::kAllGather, 1e6, 64, 1, at, seconds, -1, from};
}

double replayed(const LoggedStep& step, double seconds) {
  return replayed_seconds(step, 64, constant(seconds), 8);
}

// 10 s of work; buckets are ready after 6 and 8 s. In the log the second ends at 11 s, so that the
// step is 12 s: 2 s after the backward pass.
const LoggedStep kOverlapped{13, {bucket(6, 3), bucket(8, 2)}};

TEST(Replay, EqualTimesGiveTheLoggedStep) {
  const LoggedStep step{13, {bucket(6, 2), bucket(8, 2)}};
  EXPECT_NEAR(replayed(step, 2), 13, 1e-9);
}

TEST(Replay, TheLastBucketIsNeverHidden) {
  // In the log: ends at 9 and 11, and 2 s follow. Free collectives: the pass ends at 8.
  EXPECT_NEAR(replayed(kOverlapped, 1e-9), 13 - 3, 1e-6);
  EXPECT_NEAR(replayed(kOverlapped, 1), 13 - 2, 1e-9);
}

// Means of the largest of n normal draws (tables of normal order statistics): 0.5642, 1.4236 and
// 2.5076 of n = 2, 8 and 100.
TEST(Replay, TheSlowestOfSomeRanks) {
  EXPECT_EQ(straggler_factor(0.1, 1), 1);
  EXPECT_EQ(straggler_factor(0, 64), 1);
  EXPECT_NEAR(straggler_factor(0.1, 2), 1.0564, 0.004);
  EXPECT_NEAR(straggler_factor(0.1, 8), 1.1424, 0.004);
  EXPECT_NEAR(straggler_factor(0.1, 100), 1.2508, 0.004);
}

TEST(Replay, TheSpreadOfStepsIsThatOfTheirDifferences) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(1, 0.03);
  StepLog log{64, {}};
  for (int i = 0; i < 20'000; ++i) log.steps.push_back({normal(random) + i * 1e-5, {}});
  EXPECT_NEAR(spread_of(log) * logged_seconds(log), 0.03, 0.0015) << "without the drift";
  log.steps.resize(1);
  EXPECT_EQ(spread_of(log), 0);
}

TEST(Replay, CollectivesQueue) {
  EXPECT_NEAR(replayed(kOverlapped, 10), 13 - 11 + 26, 1e-6);  // 6 + 10 + 10
}

// A prefetched gather is called at 1 and needed at 4.
TEST(Replay, WorkHidesACollectiveUntilItIsWaitedFor) {
  const LoggedStep step{10, {waited(1, 1, 4)}};
  EXPECT_NEAR(replayed(step, 3), 10, 1e-6);
  EXPECT_NEAR(replayed(step, 5), 12, 1e-6);
  const LoggedStep late{10, {waited(1, 5, 4)}};
  EXPECT_NEAR(replayed(late, 1e-9), 8, 1e-6);
}

// The second gather is called before the first is needed, as FSDP does.
TEST(Replay, WaitsComeInTheirOwnOrder) {
  const LoggedStep step{10, {waited(1, 1, 5), waited(2, 1, 7)}};
  EXPECT_NEAR(replayed(step, 4), 10 + 2, 1e-6);  // ends at 5 and 9
  EXPECT_NEAR(replayed(step, 6), 10 + 6, 1e-6);  // ends at 7 and 13
}

TEST(Replay, WhatIsNeverWaitedForDelaysOnlyTheStream) {
  EXPECT_NEAR(replayed({10, {bucket(1, 1, -1)}}, 50), 10, 1e-9);
  EXPECT_NEAR(replayed({10, {bucket(1, 1, -1), waited(2, 1, 4)}}, 5), 10 + 7, 1e-6);
}

TEST(Replay, TheProgramWaitsAtOnceForOthers) {
  const LoggedStep step{10, {waited(1, 1, 1), waited(4, 1, 4), bucket(6, 1), bucket(8, 1)}};
  // Each of the two delays the rest by 2 s. The pass ends at 9 in the log, and at 16 in the replay.
  EXPECT_NEAR(replayed(step, 3), 10 + (16 - 9), 1e-6);
}

TEST(Replay, EachBackwardPassWaitsForItsOwn) {
  const LoggedStep step{20, {bucket(5, 1, 0), bucket(15, 1, 1)}};
  EXPECT_NEAR(replayed(step, 4), 20 + 3 + 3, 1e-6);
}

// Of 64 ranks, groups of 8 neighbours and groups of every 8th rank.
StepLog meshed(const Cluster& cluster) {
  StepLog log{64, {{10, {bucket(2, 0), bucket(6, 0)}}}};
  LoggedCollective &inner = log.steps[0].collectives[0], &outer = log.steps[0].collectives[1];
  inner.ranks = outer.ranks = 8;
  outer.stride = 8;
  for (LoggedCollective* one : {&inner, &outer}) {
    one->waited = one->at;
    one->seconds = cluster.seconds(one->kind, one->bytes, one->ranks, one->stride);
  }
  return log;
}

TEST(Replay, GroupsOfNeighboursKeepTheirSizeAndTheOthersGrow) {
  const Cluster cluster = find_cluster("h100x8");
  const StepLog log = meshed(cluster);
  EXPECT_NEAR(replayed_seconds(log, cluster, 64), 10, 1e-12);
  const auto outer = [&](int ranks) {
    return cluster.seconds(Collective::kAllReduce, 1e6, ranks, 8);
  };
  EXPECT_NEAR(replayed_seconds(log, cluster, 512), 10 + outer(64) - outer(8), 1e-12);
  EXPECT_NEAR(replayed_seconds(log, cluster, 8), 10 - outer(8), 1e-12);
  EXPECT_EQ(replay_refusal(log, 512), "");
  EXPECT_NE(replay_refusal(log, 12), "");
}

TEST(Replay, OneDeviceHasNoCollective) {
  EXPECT_NEAR(replayed_seconds(kOverlapped, 64, constant(5), 1), 13 - 3, 1e-9);
}

TEST(Replay, TakesTheMedianStep) {
  StepLog log{64, {{10, {}}, {12, {}}, {50, {}}}};
  EXPECT_EQ(replayed_seconds(log, constant(1), 8), 12);
  EXPECT_THROW(replayed_seconds(StepLog{64, {}}, constant(1), 8), InputError);
}

TEST(Replay, LogsAreUntrusted) {
  using Json = nlohmann::json;
  const Json good = {{"op", "all_reduce"}, {"bytes", 8},      {"ranks", 4}, {"at_s", 0.5}, {"s", 1},
                     {"backward", -1},     {"waited_s", 0.75}};
  const auto read = [](const Json& one) {
    return step_log_from(Json::array({{{"s", 1}, {"collectives", {one}}}}), 4, "f");
  };
  EXPECT_EQ(read(good).steps[0].collectives[0].at, 0.5);
  for (const auto& [key, bad] : std::map<std::string, Json>{{"op", "all"},
                                                            {"bytes", -1},
                                                            {"ranks", 0},
                                                            {"stride", 0},
                                                            {"at_s", nullptr},
                                                            {"s", "x"},
                                                            {"waited_s", "x"},
                                                            {"backward", 1e9}}) {
    Json one = good;
    one[key] = bad;
    EXPECT_THROW(read(one), InputError) << key;
  }
  EXPECT_THROW(step_log_from(Json("x"), 4, "f"), InputError);
}

}  // namespace
}  // namespace howmany::reports
