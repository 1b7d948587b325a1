// SPDX-License-Identifier: Apache-2.0
#include "reports/results/disturbance.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const double kUnknown = std::numeric_limits<double>::quiet_NaN();

struct Answer {
  bool certain = true, disturbed = false;
  std::string because = "Use 2.";
  std::vector<std::string> notes = {"A note."};
};

Answer marked(double busy) {
  Answer answer;
  mark_disturbed(busy, answer);
  return answer;
}

// Recorded on two cores around speedup_bench. kIdle: two ranks of ddp over gloo on an idle machine.
// kLoaded: one device while loops of nice 19 ran on both cores.
struct Recorded {
  CoreUse before, after;
};
const Recorded kIdle = {{3957.41, 4671.27, 0.09}, {3964.63, 4679.79, 7.66}};
const Recorded kLoaded = {{3868.77, 4576.13, 28.59}, {3877.40, 4584.76, 32.72}};

TEST(Disturbance, IsNotSeenInARecordedIdleRun) {
  EXPECT_FALSE(is_disturbed(busy_elsewhere(kIdle.before, kIdle.after)));
}

TEST(Disturbance, IsSeenInARecordedLoadedRun) {
  EXPECT_NEAR(busy_elsewhere(kLoaded.before, kLoaded.after), 0.52, 0.01);
  EXPECT_TRUE(is_disturbed(busy_elsewhere(kLoaded.before, kLoaded.after)));
}

TEST(Disturbance, StartsAboveATenthOfTheCores) {
  EXPECT_FALSE(is_disturbed(0.1));
  EXPECT_TRUE(is_disturbed(0.11));
  EXPECT_FALSE(is_disturbed(kUnknown));
}

TEST(LoadMeter, KnowsNothingWithinTheFirstSecond) {
  const LoadMeter meter;
  const double busy = meter.busy_elsewhere();  // a stopped process may be late
  EXPECT_TRUE(std::isnan(busy) || (busy >= 0 && busy <= 1));
}

TEST(RepeatedRounds, StartWithTheMostDisturbedAndRepeatEachOnce) {
  RepeatedRounds rounds;
  const std::vector<double> busy = {0.2, 0.05, 0.5, kUnknown};
  EXPECT_EQ(rounds.next(busy), 2);
  EXPECT_EQ(rounds.next(busy), 0);
  EXPECT_FALSE(rounds.next(busy));
}

struct Measured {
  double busy_elsewhere = 0;
  int run = 0;
};

// Returns the index of the run that is kept among runs with these loads.
int kept_of(const std::vector<double>& busy, bool has_time = true) {
  int runs = 0;
  const auto measure = [&] {
    const Measured result{busy.at(static_cast<size_t>(runs)), runs};
    ++runs;
    return result;
  };
  const Measured kept = measure_undisturbed(measure, [&](const Measured&) { return has_time; });
  EXPECT_EQ(static_cast<size_t>(runs), has_time ? busy.size() : 1);
  return kept.run;
}

TEST(MeasureUndisturbed, RepeatsOnlyADisturbedRun) {
  EXPECT_EQ(kept_of({0.05}), 0);
  EXPECT_EQ(kept_of({kUnknown}), 0);
  EXPECT_EQ(kept_of({0.5, 0.05}), 1);
}

TEST(MeasureUndisturbed, KeepsTheLessDisturbedRun) {
  EXPECT_EQ(kept_of({0.5, 0.6}), 0);
  EXPECT_EQ(kept_of({0.5, 0.4}), 1);
  EXPECT_EQ(kept_of({0.5, kUnknown}), 0) << "a run that failed may not be known";
}

TEST(MeasureUndisturbed, StopsIfThereIsNoTime) { EXPECT_EQ(kept_of({0.5, 0.05}, false), 0); }

TEST(MarkDisturbed, LeavesAnUndisturbedAnswerAlone) {
  for (const double busy : {0.0, 0.1, kUnknown}) {
    const Answer answer = marked(busy);
    EXPECT_TRUE(answer.certain);
    EXPECT_FALSE(answer.disturbed);
    EXPECT_EQ(answer.because, "Use 2.");
    EXPECT_THAT(answer.notes, ElementsAre("A note."));
  }
}

TEST(MarkDisturbed, SaysSoFirst) {
  const Answer answer = marked(0.42);
  EXPECT_FALSE(answer.certain);
  EXPECT_TRUE(answer.disturbed);
  EXPECT_TRUE(answer.because.starts_with("Uncertain")) << answer.because;
  EXPECT_TRUE(answer.because.ends_with("Use 2.")) << answer.because;
  EXPECT_THAT(answer.because, HasSubstr("42 %"));
  EXPECT_THAT(answer.notes, ElementsAre(HasSubstr("42 %"), "A note."));
  EXPECT_THAT(marked(1e300).because, HasSubstr("100 %"));
}

}  // namespace
}  // namespace howmany::reports
