// SPDX-License-Identifier: Apache-2.0
#include "benches/common/computed_step.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace howmany::benches {
namespace {

constexpr OperationSeconds kPerFlop{.per_flop = 1e-9};
constexpr int64_t kRows = 8;  // per device
// Eight layers of equal work.
const std::string kMlp = "mlp:sizes=256-256-256-256-256-256-256-256-256";
// A step has 23 products: the first layer needs no gradient of its input.
constexpr double kSlowest = 24.0 / 23;  // a stage without it
constexpr double kLayerBytes = 4 * (256 * 256 + 256);

Workload on(const std::string& mode, int devices, const std::string& model = kMlp) {
  Workload work;
  work.model = model;
  work.mode = mode;
  work.devices.assign(static_cast<size_t>(devices), Device{});
  work.global_batch = kRows * devices;
  return work;
}

// Every call takes `latency` and every byte 1 / rate.
CostTable table(int world, double latency, double bytes_per_s) {
  CostTable costs{.world = world};
  for (int ranks = 2; ranks <= world; ++ranks)
    for (int stride = 1; ranks * stride <= world; ++stride)
      for (const char* kind :
           {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "send", "send_between"})
        costs.groups[{ranks, stride}][kind] = {{1, latency}, {1e12, latency + 1e12 / bytes_per_s}};
  return costs;
}

// With kPerFlop.
double alone() { return kPerFlop.per_flop * step_work(on("single", 1), kRows).flop; }

class ComputedStepOf : public testing::TestWithParam<const char*> {};

TEST_P(ComputedStepOf, TakesItsFlopIfExchangesTakeNoTime) {
  const double seconds = computed_step_seconds(on(GetParam(), 4), table(4, 0, 1e30), kPerFlop);
  EXPECT_NEAR(seconds / alone(), 1, 0.01);
}

TEST_P(ComputedStepOf, IsTheSameEachTimeAndLongerOverASlowNetwork) {
  const auto seconds = [](double rate) {
    return computed_step_seconds(on(GetParam(), 4), table(4, 1e-6, rate), kPerFlop);
  };
  const double slow = seconds(3e7);
  EXPECT_GT(slow, 1.1 * seconds(1e30));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(seconds(3e7), slow);
}

INSTANTIATE_TEST_SUITE_P(Modes, ComputedStepOf,
                         testing::Values("ddp", "sharded", "sharded:level=2", "sharded:level=1",
                                         "tensor", "tensor:ways=2", "ddp:accumulate=2"),
                         [](const auto& mode) {
                           std::string name = mode.param;
                           std::ranges::replace_if(
                               name, [](char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

TEST(ComputedStep, TheFixedTimeOfOperationsIsNotDividedByTensor) {
  const OperationSeconds half = operation_seconds(step_work(on("single", 1), kRows), 2, 1);
  const auto seconds = [&](const std::string& mode) {
    return computed_step_seconds(on(mode, 4), table(4, 0, 1e30), half);
  };
  EXPECT_NEAR(seconds("ddp"), 2, 0.02);
  EXPECT_NEAR(seconds("ddp:accumulate=2"), 3, 0.03);  // the fixed time of each micro-batch
  // Four times the samples, a quarter of the FLOP of each and as many operations.
  EXPECT_NEAR(seconds("tensor"), 2, 0.2);
  const OperationSeconds fixed{.per_flop = 0, .fixed = half.fixed};
  EXPECT_NEAR(computed_step_seconds(on("tensor", 4), table(4, 0, 1e30), fixed), 1, 0.2);
}

TEST(ComputedStep, ManyMicroBatchesTakeTheirTimeAndOneExchange) {
  constexpr int kMany = 64;
  const double exchange = 100, rate = 8 * kLayerBytes / exchange;
  for (const double wanted : {0.0, exchange}) {
    Workload work = on("ddp:accumulate=" + std::to_string(kMany), 4);
    work.global_batch *= kMany;
    const double seconds =
        computed_step_seconds(work, table(4, 0, wanted > 0 ? rate : 1e30), kPerFlop);
    EXPECT_NEAR(seconds, wanted + kMany * alone(), 0.7 * alone());
  }
}

TEST(ComputedStep, RecomputeAddsAForwardPass) {
  const double seconds =
      computed_step_seconds(on("sharded:recompute=1", 4), table(4, 0, 1e30), kPerFlop);
  EXPECT_NEAR(seconds / alone(), 4.0 / 3, 0.02);
}

TEST(ComputedStep, ExchangesThatCannotBeHiddenTakeTheirTime) {
  // The bytes of gradients of all layers, of which none but the last exchange could be hidden.
  const double rate = 8 * kLayerBytes / 100;  // 100 s for all
  const double seconds = computed_step_seconds(on("ddp", 4), table(4, 0, rate), kPerFlop);
  EXPECT_NEAR(seconds, 100 + alone(), alone());
  // Level 3 gathers each unit twice, and the last one once, and exchanges its gradients.
  const double sharded = computed_step_seconds(on("sharded", 4), table(4, 0, rate), kPerFlop);
  EXPECT_NEAR(sharded, 100.0 * (8 + 7 + 8) / 8, 2 * alone());
  // In bf16, weights are gathered in two bytes, and all biases once, in four.
  const double gathered = 15 * 2.0 * 256 * 256 + 8 * 4.0 * 256;
  Workload half = on("sharded", 4);
  half.precision = Precision::bf16;
  const double in_bf16 = computed_step_seconds(half, table(4, 0, rate), kPerFlop);
  EXPECT_NEAR(in_bf16, 100 * (gathered / (8 * kLayerBytes) + 1), 2 * alone());
}

TEST(ComputedStep, APipelineHasItsBubble) {
  for (const int micro_batches : {4, 8}) {
    const Workload work = on("pipeline:micro_batches=" + std::to_string(micro_batches), 4);
    const double seconds = computed_step_seconds(work, table(4, 0, 1e30), kPerFlop);
    const double whole = (micro_batches + 3.0) / micro_batches;
    EXPECT_GE(seconds / alone(), whole) << micro_batches;
    EXPECT_LE(seconds / alone(), kSlowest * whole) << micro_batches;
  }
}

TEST(ComputedStep, ReplicasOfStagesExchangeTheirGradients) {
  const Workload work = on("hybrid:stages=2,micro_batches=4", 8);
  const auto seconds = [&](double rate) {
    return computed_step_seconds(work, table(8, 0, rate), kPerFlop);
  };
  EXPECT_GE(seconds(1e30) / alone(), 5.0 / 4);
  EXPECT_LE(seconds(1e30) / alone(), kSlowest * 5 / 4);
  EXPECT_GT(seconds(4 * kLayerBytes / 100), 50);  // each stage has four layers
}

TEST(ComputedStep, RefusesModesThatHaveNoRanks) {
  for (const char* mode : {"single", "data_parallel", "model"})
    EXPECT_THROW(computed_step_seconds(on(mode, 2), table(2, 0, 1), kPerFlop),
                 std::invalid_argument);
}

}  // namespace
}  // namespace howmany::benches
