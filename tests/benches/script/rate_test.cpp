// SPDX-License-Identifier: Apache-2.0
#include "benches/script/rate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/base/error.h"

namespace howmany::benches {
namespace {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kPattern = "loss .* (?<samples_per_s>[0-9.]+) img/s";

std::string line(double rate) { return fmt::format("loss 1.5 at {} img/s\n", rate); }

void print(RateLog& log, int lines, double rate, double& now, double seconds_per_line = 0.1) {
  for (int i = 0; i < lines; ++i)
    log.take(RateLog::Stream::kOut, line(rate), now += seconds_per_line);
}

TEST(RateLog, RefusesABadPatternAndOneWithoutAGroup) {
  EXPECT_THROW(RateLog("(", 1), std::invalid_argument);
  EXPECT_THROW(RateLog("[0-9]+ img/s", 1), std::invalid_argument);
  EXPECT_THROW(RateLog("(?<samples_per_s>a)(?<step_s>b)", 1), std::invalid_argument);
  EXPECT_TRUE(RateLog("(?<step_s>[0-9.]+) s/it", 1).per_step());
}

TEST(RateLog, DropsTheFirstLinesUntilTheyHaveSettled) {
  RateLog log(kPattern, 0.5);
  double now = 0;
  print(log, 1, 1, now);   // the start of the program
  print(log, 4, 20, now);  // slow
  print(log, 40, 100, now);
  EXPECT_TRUE(log.is_done(now));
  EXPECT_GE(log.warmup_lines(), 5);
  EXPECT_THAT(log.seconds(), Each(DoubleEq(0.01)));
}

TEST(RateLog, SlowLinesWarmUpForTheGivenTime) {
  RateLog log(kPattern, 2);
  double now = 0;
  print(log, 3, 100, now, 10);
  EXPECT_FALSE(log.is_done(now));
  print(log, 5, 100, now, 10);
  EXPECT_TRUE(log.is_done(now));
  EXPECT_EQ(log.warmup_lines(), 3);
  EXPECT_THAT(log.seconds(), SizeIs(5));
}

TEST(RateLog, JoinsPiecesOfALineAndKeepsTheStreamsApart) {
  RateLog log("^(?<step_s>[0-9.]+) s$", 0);
  for (int i = 0; i < 20; ++i) {
    log.take(RateLog::Stream::kOut, "0.2", 10.0 * i);
    log.take(RateLog::Stream::kErr, "progress\r", 10.0 * i);
    log.take(RateLog::Stream::kOut, "5 s\r", 10.0 * i);
  }
  EXPECT_THAT(log.seconds(), Each(DoubleEq(0.25)));
}

TEST(RateLog, RefusesTextThatIsNoPositiveNumber) {
  for (const char* const bad : {"1.2.3", "0", "1e999"}) {
    RateLog log("(?<samples_per_s>[0-9.e]+) img/s", 1);
    log.take(RateLog::Stream::kOut, fmt::format("{} img/s\n", bad), 0);
    EXPECT_TRUE(log.is_done(0));
    EXPECT_THROW(log.seconds(), Error) << bad;
  }
}

TEST(RateLog, TakesSeparatorsOfThousands) {
  RateLog log(R"((?<samples_per_s>[0-9.,]+k?) img/s)", 0.01);
  const char* const printed[] = {"1,250.0", "1250", "1.25k"};
  for (int i = 0; i < 30; ++i)
    log.take(RateLog::Stream::kOut, fmt::format("{} img/s\n", printed[i % 3]), i);
  EXPECT_THAT(log.seconds(), Each(DoubleEq(1 / 1250.0)));
}

TEST(RateLog, SaysHowManyLinesMatchedIfTheyAreTooFew) {
  RateLog log(kPattern, 1);
  double now = 0;
  print(log, 3, 100, now);
  EXPECT_FALSE(log.is_done(100));
  EXPECT_THAT([&] { log.seconds(); },
              ::testing::ThrowsMessage<Error>(HasSubstr("matched 3 of the printed lines")));
}

TEST(RateLog, ALineThatIsTooHardToMatchFails) {
  RateLog log("^(a+)+(?<samples_per_s>[0-9]+)$", 1);
  log.take(RateLog::Stream::kOut, std::string(60000, 'a') + "\n", 0);
  EXPECT_TRUE(log.is_done(0));
  EXPECT_THROW(log.seconds(), Error);
}

}  // namespace
}  // namespace howmany::benches
