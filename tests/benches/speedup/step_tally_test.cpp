// SPDX-License-Identifier: Apache-2.0
#include "benches/speedup/step_tally.h"

#include <gmock/gmock.h>

namespace howmany::benches {
namespace {

using ::testing::ElementsAre;

// Two warm-up steps, then three steps, one of which is an outlier in every value.
StepTally five_steps() {
  StepTally tally;
  tally.add(9, 8, {.bubble = 1, .waited_seconds = 7});
  tally.add(5, 4, {.bubble = 1, .waited_seconds = 3});
  tally.add(1, 0.25, {.bubble = 0.25, .theoretical_bubble = 0.5, .waited_seconds = 0.25});
  tally.add(4, 3, {.bubble = 0.75, .theoretical_bubble = 0.5, .waited_seconds = 2.5});
  tally.add(1, 0.5, {.bubble = 0.125, .theoretical_bubble = 0.625, .waited_seconds = 0});
  return tally;
}

TEST(StepTally, ForgetsTheStepsThatWarmUp) {
  StepTally tally = five_steps();
  EXPECT_EQ(tally.size(), 5u);
  tally.forget_first(2);
  EXPECT_EQ(tally.size(), 3u);
  EXPECT_THAT(tally.own(), ElementsAre(0.75, 1.5, 1));
  EXPECT_DOUBLE_EQ(tally.wait_fraction(), 3.75 / 6);
}

TEST(StepTally, ReportsTheTypicalStepAndNotTheMean) {
  StepTally tally = five_steps();
  EXPECT_EQ(tally.typical(&StepReport::bubble), 0.75);
  tally.forget_first(2);
  EXPECT_EQ(tally.typical(&StepReport::bubble), 0.25);
  EXPECT_EQ(tally.last().theoretical_bubble, 0.625);
}

}  // namespace
}  // namespace howmany::benches
