// SPDX-License-Identifier: Apache-2.0
// Tests rows of torch.distributed in the answer of `howmany backend`: their names, the comparison
// with howmany's backend over the same library, and the recommendation.
#include "reports/comm/torch.h"

#include <gmock/gmock.h>

#include <cmath>

#include "reports/comm/advise.h"
#include "reports/comm/torch_python.h"
#include "reports/results/cell.h"
#include "tests/reports/comm/examples.h"

namespace howmany::reports {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns gloo and local, and torch's backends with `factor` times gloo's time.
std::vector<Measurement> with_torch(double factor, const std::vector<std::string>& names) {
  std::vector<Measurement> all = two_backends();
  for (const std::string& name : names)
    for (double bytes = 4; bytes <= 64 * kMiB; bytes *= 4)
      all.push_back(cell("all_reduce", name, bytes, factor * (10e-6 + 2e-9 * bytes)));
  return all;
}

Measurement measurement_named(const std::string& name) {
  SuiteRun run;
  BenchRow row;
  row.name = name;
  row.counters = {{"median_s", 1e-3}};
  run.file.rows = {row};
  return measurements_of(run).at(0);
}

TEST(TorchRow, NameHoldsTheBackendAndTheParameters) {
  const Measurement m = measurement_named(
      "backend/all_reduce/torch:gloo/dtype:f32/devices:2/bytes:1000/model:mlp:sizes=8");
  EXPECT_EQ(m.suite, "backend");
  EXPECT_EQ(m.name, "all_reduce/torch:gloo");
  EXPECT_EQ(backend_of(m), "torch:gloo");
  EXPECT_EQ(parameter_of(m, "bytes"), "1000");
  EXPECT_EQ(parameter_of(m, "model"), "mlp:sizes=8");
  EXPECT_EQ(m.parameters.size(), 4u);
}

TEST(TorchRow, DeviceWithAColonStaysAParameter) {
  const Measurement m = measurement_named("transfer/copy/device:cuda:0/bytes:4");
  EXPECT_EQ(m.name, "copy");
  EXPECT_EQ(parameter_of(m, "device"), "cuda:0");
}

TEST(TorchGap, IsTheGeometricMeanOverCommonSizes) {
  std::vector<Measurement> all = with_torch(1.5, {"torch:gloo"});
  all.push_back(cell("all_reduce", "torch:gloo", 96, 1));  // not measured for gloo
  const BackendAdvice advice = advise_backend(all);
  ASSERT_EQ(advice.torch.size(), 1u);
  const TorchGap& gap = advice.torch[0];
  EXPECT_EQ(gap.backend, "gloo");
  EXPECT_EQ(gap.torch, "torch:gloo");
  EXPECT_NEAR(gap.ratio, 1.5, 1e-9);
  EXPECT_EQ(gap.sizes, 13);
  EXPECT_TRUE(differs(gap));
  EXPECT_THAT(advice.notes, Contains(words_of(gap)));
}

TEST(TorchGap, NamesTheSizeOfTheLargestDifference) {
  std::vector<Measurement> all = with_torch(1, {"torch:gloo"});
  for (Measurement& m : all)
    if (backend_of(m) == "torch:gloo" && number_of(m, "bytes") == 1024)
      m.metrics["median_s"].value /= 8;
  const TorchGap gap = advise_backend(all).torch.at(0);
  EXPECT_EQ(gap.bytes, 1024);
  EXPECT_NEAR(gap.largest, 1 / 8.0, 1e-9);
  EXPECT_NEAR(gap.ratio, std::pow(1 / 8.0, 1 / 13.0), 1e-9);
}

TEST(TorchGap, IsNotReportedUpToTenPercent) {
  for (const double factor : {1.09, 1 / 1.09}) {
    const BackendAdvice advice = advise_backend(with_torch(factor, {"torch:gloo"}));
    ASSERT_EQ(advice.torch.size(), 1u);
    EXPECT_FALSE(differs(advice.torch[0]));
    EXPECT_THAT(advice.notes, Not(Contains(HasSubstr("geometric mean"))));
  }
  EXPECT_TRUE(differs(advise_backend(with_torch(1 / 1.12, {"torch:gloo"})).torch.at(0)));
}

TEST(TorchGap, IsAbsentWithoutBothRows) {
  EXPECT_TRUE(advise_backend(two_backends()).torch.empty());
  EXPECT_TRUE(advise_backend(with_torch(2, {"torch:nccl"})).torch.empty());
  EXPECT_TRUE(advise_backend({}).torch.empty());
}

TEST(TorchRecommendation, NamesTheOneRowOfTorchAmongOthers) {
  const BackendAdvice advice = advise_backend(with_torch(2, {"torch:gloo"}));
  EXPECT_EQ(advice.recommended, "local");
  EXPECT_THAT(advice.because, HasSubstr("torch:gloo"));
}

TEST(TorchRecommendation, IsOneOfTorchsRowsIfThereAreSeveral) {
  std::vector<Measurement> all = with_torch(2, {"torch:gloo"});
  for (double bytes = 4; bytes <= 64 * kMiB; bytes *= 4)
    all.push_back(cell("all_reduce", "torch:nccl", bytes, 8 * (10e-6 + 2e-9 * bytes)));
  const BackendAdvice advice = advise_backend(all);
  EXPECT_EQ(advice.recommended, "torch:gloo");
  EXPECT_TRUE(advice.certain);
  EXPECT_THAT(advice.because, Not(HasSubstr("local")));
}

TEST(TorchRecommendation, DecidesByTheModelsBuckets) {
  std::vector<Measurement> all = with_torch(2, {"torch:gloo", "torch:nccl"});
  for (const auto& [backend, seconds] :
       {std::pair{"gloo", 1e-6}, {"local", 1e-6}, {"torch:gloo", 9e-6}, {"torch:nccl", 5e-6}})
    all.push_back(cell("all_reduce", backend, 512, seconds, "mlp"));
  EXPECT_EQ(advise_backend(all).recommended, "torch:nccl");
}

TEST(TorchPython, IsReadFromTheProbe) {
  const TorchPython torch = torch_python_from({{"python", "3.11.7"},
                                               {"torch", "2.13.0"},
                                               {"backends", {"gloo", "evil"}},
                                               {"found", true},
                                               {"why", ""}});
  EXPECT_EQ(torch.version, "2.13.0");
  EXPECT_THAT(torch.backends, ElementsAre("gloo"));
  EXPECT_TRUE(torch.problem.empty());
  EXPECT_THROW(torch_python_from({{"python", 3}}), InputError);
}

}  // namespace
}  // namespace howmany::reports
