// SPDX-License-Identifier: Apache-2.0
// Tests `howmany transfer` of host memory: whether more threads copy faster, and from which size.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/base/schema/reasons.h"
#include "reports/transfer/advise.h"

namespace howmany::reports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Rows = std::vector<Measurement>;
constexpr double kThreadsMiB = 1 << 20;

Measurement without_interval(const char* threads, double bytes, double seconds) {
  Measurement m{"transfer", "copy", {}, {}, {}};
  m.parameters = {{"threads", threads}, {"bytes", fmt::format("{:.0f}", bytes)}};
  m.metrics["median_s"] = {seconds, "s", {}, {}, 3, "iterations"};
  return m;
}

Measurement copy_of(const char* threads, double bytes, double seconds, double spread = 0.01) {
  Measurement m = without_interval(threads, bytes, seconds);
  m.metrics["median_s"].low = (1 - spread) * seconds;
  m.metrics["median_s"].high = (1 + spread) * seconds;
  return m;
}

std::string because(const Rows& rows) { return advise_transfer(rows).because; }

TEST(TransferAdvice, FindsTheSizeFromWhichACopyIsBandwidth) {
  Rows all;
  for (double bytes = 64; bytes <= 64 * kThreadsMiB; bytes *= 4) {
    all.push_back(copy_of("1", bytes, 1e-6 + bytes / 8e9));
    all.push_back(copy_of("2", bytes, 4e-6 + bytes / 12e9));
  }
  const TransferAdvice advice = advise_transfer(all);
  EXPECT_EQ(advice.recommended, 2);
  EXPECT_THAT(advice.because, AllOf(HasSubstr("2 threads"), HasSubstr("1.5x")));
  EXPECT_NEAR(*advice.latency_below, 8000, 1200);
}

TEST(CopyThreads, AreOneIfASecondBringsNothing) {
  const TransferAdvice advice = advise_transfer(
      {copy_of("1", kThreadsMiB, 1e-4, 0.001), copy_of("2", kThreadsMiB, 0.98e-4, 0.001)});
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_EQ(advice.reason, reason::kMoreThreadsNotFaster);
  EXPECT_TRUE(advice.certain);
  EXPECT_THAT(advice.because, HasSubstr("10.5 GB/s"));
}

TEST(CopyThreads, AreOneIfIntervalsOverlap) {
  const TransferAdvice advice = advise_transfer(
      {copy_of("1", kThreadsMiB, 1e-4, 0.2), copy_of("2", kThreadsMiB, 0.8e-4, 0.2)});
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_EQ(advice.reason, reason::kMoreThreadsNotFaster);
  EXPECT_FALSE(advice.certain);
}

TEST(CopyThreads, AreNotComparedIfOneNumberWasMeasured) {
  EXPECT_THAT(because({copy_of("1", kThreadsMiB, 1e-4)}),
              HasSubstr("no other number of threads was measured"));
}

TEST(CopyThreads, AreComparedAtTheLargestCommonSize) {
  const Rows rows = {copy_of("1", kThreadsMiB, 1e-4), copy_of("1", 256 * kThreadsMiB, 256e-4 * 2),
                     copy_of("2", kThreadsMiB, 0.98e-4, 0.001)};
  EXPECT_EQ(advise_transfer(rows).recommended, 1) << "out of the caches any copy is slower";
  EXPECT_THAT(because(rows), HasSubstr("10.5 GB/s at 1 MiB"));
  const TransferAdvice advice =
      advise_transfer({copy_of("1", kThreadsMiB, 1e-4), copy_of("1", 256 * kThreadsMiB, 1),
                       copy_of("2", kThreadsMiB, 0.5e-4)});
  EXPECT_EQ(advice.recommended, 2);
  EXPECT_EQ(advice.reason, reason::kMoreThreadsFaster);
  EXPECT_THAT(advice.because, AllOf(HasSubstr("21.0 GB/s"), HasSubstr("2.0x")));
}

TEST(CopyThreads, AreNotComparedWithoutACommonSize) {
  const TransferAdvice advice =
      advise_transfer({copy_of("1", 64 * kThreadsMiB, 1e-2), copy_of("2", kThreadsMiB, 0.5e-4)});
  EXPECT_EQ(advice.recommended, 1);
  EXPECT_THAT(advice.because, HasSubstr("could be compared"));
}

TEST(CopyThreads, AreNotComparedWithoutIntervals) {
  Rows rows = {without_interval("1", kThreadsMiB, 1e-4),
               without_interval("2", kThreadsMiB, 0.5e-4)};
  EXPECT_EQ(advise_transfer(rows).recommended, 1);
  EXPECT_THAT(because(rows), AllOf(HasSubstr("could be compared"), Not(HasSubstr("less"))));
  rows.push_back(copy_of("1", kThreadsMiB / 4, 1e-4));
  rows.push_back(copy_of("2", kThreadsMiB / 4, 0.5e-4));
  EXPECT_THAT(because(rows), HasSubstr("2.0x")) << "at a smaller size, which has them";
}

TEST(CopyThreads, AreTheFewestThatBringMore) {
  const TransferAdvice advice =
      advise_transfer({copy_of("1", kThreadsMiB, 1e-4), copy_of("2", kThreadsMiB, 0.5e-4),
                       copy_of("4", kThreadsMiB, 0.48e-4), copy_of("8", kThreadsMiB, 0.3e-4, 0.9)});
  EXPECT_EQ(advice.recommended, 2);
}

}  // namespace
}  // namespace howmany::reports
