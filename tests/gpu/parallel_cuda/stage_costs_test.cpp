// SPDX-License-Identifier: Apache-2.0
// Stage costs with imitated GPUs among the devices.
#include "parallel/pipeline/stage_costs.h"

#include <gtest/gtest.h>

#include <mutex>

#include "core/backends/cuda/runtime/runtime.h"
#include "parallel/launch/launch.h"
#include "tests/fakes/fake_gpu.h"
#include "tests/support/through.h"

namespace howmany {
namespace {

using namespace testing_support;

constexpr double kStageSeconds = 1;  // more than the rest could take

// A model of three units. The second is slow on GPUs: it takes GPU time, but no host time.
ModelSpec costed_model() {
  const auto spend = [](const Tensor& x) {
    if (x.device().type == DeviceType::cuda)
      hm_fake_gpu_spend(cuda::stream_of(x.device().index), kStageSeconds);
  };
  return model_through(spend, [](const Tensor&) {});
}

Device cpu(int index) { return {DeviceType::cpu, index}; }
Device cuda_at(int index) { return {DeviceType::cuda, index}; }

TEST(StageCosts, UseTheClockOfTheGpu) {
  const auto costs =
      stage_costs(costed_model(), Dtype::f32, {.all = 1, .devices = {cuda_at(0)}}, nullptr);
  const double most_rows = 32;
  EXPECT_GE(costs.at(0).at(1), kStageSeconds / most_rows);
  EXPECT_LT(costs.at(0).at(0), kStageSeconds / most_rows);
}

TEST(StageCosts, UseTheStagesDevice) {
  const auto costs = stage_costs(costed_model(), Dtype::f32,
                                 {.all = 3, .devices = {cpu(0), cuda_at(1), cpu(2)}}, nullptr);
  EXPECT_LT(costs.at(0).at(1), kStageSeconds / 100);
  EXPECT_GT(costs.at(1).at(1), kStageSeconds / 100);
  EXPECT_EQ(costs.at(2), costs.at(0));  // a type is measured once
}

// Returns the costs on each rank.
std::vector<std::vector<UnitCosts>> costs_over_ranks(const std::vector<MyStages>& stages) {
  std::vector<std::vector<UnitCosts>> costs(stages.size());
  launch_threads(static_cast<int>(stages.size()), [&](Comm& world) {
    const auto rank = static_cast<size_t>(world.rank());
    costs[rank] = stage_costs(costed_model(), Dtype::f32, stages[rank], &world);
  });
  return costs;
}

TEST(StageCosts, UseTheSlowerReplicaOnAllRanks) {
  const auto costs = costs_over_ranks({{.all = 2, .first = 0, .devices = {cpu(0), cuda_at(1)}},
                                       {.all = 2, .first = 0, .devices = {cpu(2), cpu(3)}}});
  EXPECT_EQ(costs[0], costs[1]);
  EXPECT_LT(costs[1].at(0).at(1), kStageSeconds / 100);
  EXPECT_GT(costs[1].at(1).at(1), kStageSeconds / 100);
  for (size_t unit = 0; unit < 3; ++unit)
    EXPECT_GE(costs[0].at(1).at(unit), costs[0].at(0).at(unit));
}

}  // namespace
}  // namespace howmany
