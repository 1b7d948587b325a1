// SPDX-License-Identifier: Apache-2.0
// Tests rows of torch.distributed in the answer of `howmany backend`: their names and the
// recommendation.
#include <gmock/gmock.h>

#include "reports/comm/advise.h"
#include "reports/comm/run.h"
#include "reports/comm/torch_python.h"
#include "reports/results/cell.h"
#include "tests/reports/comm/examples.h"

namespace howmany::reports {
namespace {

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
