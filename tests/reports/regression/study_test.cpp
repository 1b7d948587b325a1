// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/study/self_test.h"

#include <gmock/gmock.h>

#include "reports/regression/study/figures.h"
#include "reports/regression/study/replay.h"
#include "tests/reports/regression/noisy_machine.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

TEST(Gate, UnchangedCodeRaisesNoAlarm) {
  NoisyMachine machine(3);
  const auto launches = machine.trace(12000, 4, 0, "same");
  const GateTally tally =
      replay_gates(suite_of(launches, "base"), suite_of(launches, "same"), {10, 30, {}});
  EXPECT_GE(tally.alarms.of, 300);
  EXPECT_LE(tally.alarms.value(), 0.01);
  EXPECT_LE(tally.gains.value(), 0.01);
  EXPECT_LE(tally.inconclusive.value(), 0.1);
}

TEST(Gate, FindsRealSlowdownsAndItsIntervalsHoldThem) {
  NoisyMachine machine(4);
  const auto launches = machine.trace(3000, 4, 0.05, "slow5");
  const Suite base = suite_of(launches, "base"), slow = suite_of(launches, "slow5");
  const WindowTally tally = replay_windows(base, slow, 30, {}, 0.05);
  EXPECT_EQ(tally.alarms.of, 100);
  EXPECT_GE(tally.slower.value(), 0.95);
  EXPECT_EQ(tally.faster.hits, 0);
  EXPECT_NEAR(tally.covered.value(), 0.95, 0.03);
  EXPECT_EQ(replay_gates(base, slow, {10, 30, {}}).alarms.value(), 1);
}

// Shows why sides are paired: without interleaving, drift deceives a valid test on the same
// launches.
TEST(Others, AreDeceivedByDriftWhereOneSideComesFirst) {
  NoisyMachine machine(5);
  std::vector<Launch> launches = machine.trace(2400, 4, 0, "same");
  for (Launch& launch : launches) {
    const double drift = 1 + 0.15 * std::sin(static_cast<double>(launch.block) / 40);
    for (auto& [name, metrics] : launch.values) metrics["real_time"][0] *= drift;
  }
  const Suite base = suite_of(launches, "base"), same = suite_of(launches, "same");
  const auto apart = replay_others(base, same, 20, false),
             turns = replay_others(base, same, 20, true);
  ASSERT_EQ(apart.size(), 3u);
  EXPECT_GT(apart[0].alarms.value(), 0.2);
  EXPECT_LT(turns[0].alarms.value(), apart[0].alarms.value());
  EXPECT_EQ(replay_gates(base, same, {10, 30, {}}).alarms.hits, 0);
}

TEST(Share, IntervalIsClopperAndPearsons) {
  EXPECT_NEAR(interval_of({0, 300}).high, 0.01222, 1e-5);  // 1 - 0.025^(1/300)
  EXPECT_EQ(interval_of({0, 300}).low, 0);
  EXPECT_NEAR(interval_of({5, 10}).low, 0.18709, 1e-5);
  EXPECT_NEAR(interval_of({5, 10}).high, 0.81291, 1e-5);
  EXPECT_EQ(interval_of({0, 0}).high, 1);
}

TEST(Figures, TellTheTraceInFullAndInWords) {
  NoisyMachine machine(8);
  std::vector<Launch> launches = machine.trace(400, 2, 0, kSameArm);
  for (const Launch& launch : machine.trace(400, 2, 0.1, slow_arm(10))) {
    if (launch.arm != "base") launches.push_back(launch);
  }
  const auto all = figures(launches, {10, 30, {}});
  EXPECT_EQ(all["unchanged"]["false_alarms"]["hits"], 0);
  EXPECT_EQ(all["power"].size(), 12u);
  EXPECT_THAT(render_figures(all), HasSubstr("false alarms          0.0 % [0.0, "));
  const double spread = noise(launches, 30)["spread"]["b0"];
  EXPECT_GT(spread, 0.001);
  EXPECT_LT(spread, 0.02);
}

}  // namespace
}  // namespace howmany::reports
