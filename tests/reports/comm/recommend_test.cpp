// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/recommend.h"
#include "core/base/schema/reasons.h"

#include <gmock/gmock.h>

#include "reports/comm/advise.h"
#include "tests/reports/comm/examples.h"

namespace howmany::reports {
namespace {

constexpr double kLarge = 1 << 20;  // bytes

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A sweep in which mpi is certainly twice as fast as gloo.
std::vector<Measurement> mpi_twice_as_fast() {
  std::vector<Measurement> all;
  for (double bytes = 4; bytes <= 64 * kMiB; bytes *= 4) {
    all.push_back(of_rounds("gloo", bytes, 20e-6 + 2e-9 * bytes, 0.01));
    all.push_back(of_rounds("mpi", bytes, 10e-6 + 1e-9 * bytes, 0.01));
  }
  return all;
}

TEST(RecommendBackend, IsUncertainIfTheBucketsAre) {
  std::vector<Measurement> all = mpi_twice_as_fast();
  all.push_back(of_rounds("gloo", 200, 11.0e-6, 0.5, "mlp"));
  all.push_back(of_rounds("mpi", 200, 10.9e-6, 0.5, "mlp"));
  const BackendAdvice advice = advise_backend(all);
  EXPECT_FALSE(advice.certain);
  EXPECT_EQ(advice.reason, reason::kNoDifference);
}

TEST(RecommendBackend, IsCertainIfTheSumsOverBucketsAreApart) {
  const auto certain = [](double half) {
    std::vector<Measurement> all = mpi_twice_as_fast();
    for (const double bytes : {200.0, 400.0}) {
      all.push_back(of_rounds("gloo", bytes, 15e-6, half, "mlp"));
      all.push_back(of_rounds("mpi", bytes, 10e-6, half, "mlp"));
    }
    return advise_backend(all).certain;
  };
  EXPECT_TRUE(certain(0.1));
  EXPECT_FALSE(certain(0.3));
}

TEST(RecommendBackend, IsUncertainIfOneOfTwoOthersIsNear) {
  std::vector<Measurement> all = mpi_twice_as_fast();
  for (double bytes = 4; bytes <= 64 * kMiB; bytes *= 4)
    all.push_back(of_rounds("local", bytes, 50e-6 + 5e-9 * bytes, 0.9));
  const BackendAdvice advice = advise_backend(all);
  EXPECT_FALSE(advice.certain);
  EXPECT_THAT(advice.because, HasSubstr("and local"));
}

TEST(RecommendBackend, UsesTheBucketsIfTheSweepHasAnotherType) {
  std::vector<Measurement> all = mpi_twice_as_fast();
  for (Measurement& m : all) m.parameters["dtype"] = "bf16";
  all.insert(all.begin(), {of_rounds("gloo", 200, 10e-6, 0.01, "mlp"),
                           of_rounds("mpi", 200, 20e-6, 0.01, "mlp")});
  const BackendAdvice advice = advise_backend(all);
  EXPECT_EQ(advice.recommended, "gloo");
  EXPECT_EQ(advice.reason, reason::kFastest);
  EXPECT_THAT(advice.because, HasSubstr("gradient bucket of mlp"));
}

TEST(RecommendBackend, UsesTheSweepIfABucketIsMissing) {
  std::vector<Measurement> all = mpi_twice_as_fast();
  for (const double bytes : {200.0, 400.0}) {
    all.push_back(of_rounds("gloo", bytes, 20e-6, 0.01, "mlp"));
    all.push_back(of_rounds("mpi", bytes, 10e-6, 0.01, "mlp"));
  }
  all.back() = skipped(all.back());
  const BackendAdvice advice = advise_backend(all);
  EXPECT_EQ(advice.recommended, "mpi");
  EXPECT_FALSE(advice.certain);
  EXPECT_THAT(advice.because,
              AllOf(HasSubstr("all_reduce of 16 MiB over 2 ranks"),
                    HasSubstr("mpi was not measured at 1 of the 2 gradient buckets of mlp")));
}

TEST(RecommendBackend, LeavesOutABackendThatFailedAtABucket) {
  std::vector<Measurement> all = mpi_twice_as_fast();
  all.push_back(of_rounds("gloo", 200, 20e-6, 0.01, "mlp"));
  all.push_back(skipped(of_rounds("mpi", 200, 10e-6, 0.01, "mlp")));
  all.back().flags = {"failed: peer 1 did not arrive"};
  const BackendAdvice advice = advise_backend(all);
  EXPECT_EQ(advice.recommended, "gloo");
  EXPECT_FALSE(advice.certain);
  EXPECT_THAT(advice.because, AllOf(HasSubstr("mpi failed"), Not(HasSubstr("Only gloo"))));
}

TEST(RecommendBackend, IsUncertainIfOthersHaveNoTime) {
  std::vector<Measurement> all = {cell("all_reduce", "gloo", 4, 1e-6)};
  EXPECT_TRUE(advise_backend(all).certain);
  all.push_back(skipped(cell("all_reduce", "mpi", 4, 1e-6)));
  const BackendAdvice advice = advise_backend(all);
  EXPECT_FALSE(advice.certain);
  EXPECT_THAT(advice.because, Not(HasSubstr("Only")));
}

TEST(RecommendBackend, OfOneRoundIsCertainFromAFactorOfTwo) {
  const auto advice = [](double seconds) {
    return advise_backend(
        {cell("all_reduce", "gloo", kLarge, seconds), cell("all_reduce", "mpi", kLarge, 1e-6)});
  };
  EXPECT_FALSE(advice(1.9e-6).certain);
  EXPECT_THAT(advice(1.9e-6).because, HasSubstr("another run may differ (one round)"));
  EXPECT_TRUE(advice(2.1e-6).certain);
  EXPECT_THAT(advice(2.1e-6).because, Not(HasSubstr("one round")));
}

TEST(RecommendBackend, OfRoundsIsCertainIfIntervalsAreApart) {
  EXPECT_TRUE(advise_backend(
                  {of_rounds("gloo", kLarge, 1.2e-6, 0.01), of_rounds("mpi", kLarge, 1e-6, 0.01)})
                  .certain);
}

TEST(RecommendBackend, HasNoAnswerFromSmallMessages) {
  const BackendAdvice advice =
      advise_backend({of_rounds("gloo", 4, 9e-6, 0.01), of_rounds("mpi", 4, 1e-6, 0.01)});
  EXPECT_EQ(advice.recommended, std::nullopt);
  EXPECT_EQ(advice.reason, reason::kMessagesTooSmall);
  EXPECT_FALSE(advice.certain);
}

}  // namespace
}  // namespace howmany::reports
