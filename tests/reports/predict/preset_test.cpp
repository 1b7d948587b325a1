// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/preset.h"

#include <gmock/gmock.h>

#include <bit>

#include "core/base/error.h"
#include "reports/predict/forecast_json.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

// 10 equal units of 0.1 GFLOP per sample, with the gradients of `mib` MiB together.
ModelCosts costs(double mib, const std::string& work = "convolutions") {
  ModelCosts c{"net", work, {}};
  for (int i = 0; i < 10; ++i) c.units.push_back({1e8, {mib * (1 << 20) / 10}});
  return c;
}

Cluster cluster(double gbit_per_s) {
  Cluster c = find_cluster("a100x4");
  c.network->links = 1;
  c.network->gbit_per_s = gbit_per_s;
  return c;
}

std::string refusal(const ModelCosts& c, const PresetOptions& options = {},
                    const std::string& where = "a100x4") {
  try {
    preset(c, find_cluster(where), options);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

Forecast answer(const ModelCosts& c, const Cluster& where, int up_to, int64_t batch = 512,
                int64_t global_batch = 0) {
  ForecastOptions options;
  options.up_to = up_to;
  options.devices_per_node = where.devices_per_node;
  return forecast(c, preset(c, where, {"bf16", batch, global_batch}), options);
}

TEST(Preset, AStepTakesItsFlopOverTheRateOfTheChip) {
  const Preset p = preset(costs(100), find_cluster("a100x4"), {"bf16", 512});
  EXPECT_NEAR(p.per_s.value, 52.5e12 / 3e9, 1);  // the rate in chip_rates.inc
  EXPECT_NEAR(logged_seconds(p.log), 512 / p.per_s.value, 1e-9);
  EXPECT_LT(p.per_s.low, 0.8 * p.per_s.value);
  EXPECT_GT(p.per_s.high, 1.2 * p.per_s.value);
  const Preset slower = preset(costs(100), find_cluster("a100x4"), {"tf32", 512});
  EXPECT_LT(slower.per_s.value, p.per_s.value);
}

TEST(Preset, TheUsualBatchIsAPowerOfTwoThatIsLargeEnough) {
  const Preset p = preset(costs(100), find_cluster("a100x4"), {});
  EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(p.batch)));
  EXPECT_GE(static_cast<double>(p.batch) * 3e9, 0.79e12);
}

TEST(Preset, GradientsFillTheBucketsOfDistributedDataParallel) {
  const Preset p = preset(costs(100), find_cluster("a100x4"), {"bf16", 512});
  const LoggedStep& step = p.log.steps.at(0);
  double sum = 0, before = step.seconds / 3;
  for (const LoggedCollective& one : step.collectives) {
    EXPECT_GE(one.at, before);
    EXPECT_LE(one.at, step.seconds * (1 + 1e-9));
    before = one.at;
    sum += one.bytes;
  }
  EXPECT_NEAR(sum, 100 * (1 << 20), 1);
  ASSERT_EQ(step.collectives.size(), 4u);  // of one parameter of 10 MiB, then of three each
  EXPECT_NEAR(step.collectives.front().bytes, 10 << 20, 1);
  for (size_t i = 1; i < 4; ++i) EXPECT_NEAR(step.collectives[i].bytes, 30 << 20, 1);
  EXPECT_NEAR(step.collectives.back().at, step.seconds, 1e-9);  // of the first unit
}

TEST(Preset, ASlowNetworkCostsEfficiencyAndAFastOneWhatPublishedCurvesLose) {
  const Forecast slow = answer(costs(400), cluster(10), 16);
  const Forecast fast = answer(costs(400), cluster(10'000), 16);
  EXPECT_LT(slow.offers.back().efficiency.value, 0.5);
  const double published = predict({{1, 1}}, 16, 4).efficiency.value;
  EXPECT_NEAR(fast.offers.back().efficiency.value, published, 0.03);
}

TEST(Preset, TheGlobalBatchIsTrainedInEqualMicroBatches) {
  const Preset p = preset(costs(100), find_cluster("a100x4"), {"bf16", 512, 4096});
  EXPECT_EQ(p.batch, 512);
  const LoggedStep& step = p.log.steps.at(0);
  const double of_512 =
      preset(costs(100), find_cluster("a100x4"), {"bf16", 512}).log.steps[0].seconds;
  EXPECT_NEAR(step.seconds, 8 * of_512, 1e-9);
  for (const LoggedCollective& one : step.collectives)
    EXPECT_GE(one.at, 7 * of_512 + of_512 / 3 - 1e-9);  // in the last micro-batch
  EXPECT_EQ(preset(costs(100), find_cluster("a100x4"), {"bf16", 512, 300}).batch, 300);
}

TEST(Preset, StrongScalingLosesBySmallSharesAndGainsByFewerExchanges) {
  const Cluster where = cluster(200);
  const Forecast weak = answer(costs(400), where, 16),
                 strong = answer(costs(400), where, 16, 512, 4096);
  EXPECT_FALSE(weak.strong);
  EXPECT_TRUE(strong.strong);
  const auto efficiency = [](const Forecast& f, int row) { return f.offers[row].efficiency.value; };
  EXPECT_GT(efficiency(strong, 2), efficiency(weak, 2));          // 4 GPUs: 2 micro-batches of 512
  EXPECT_NEAR(efficiency(strong, 3), efficiency(weak, 3), 1e-9);  // 8 GPUs: one of 512
  EXPECT_THAT(strong.offers[4].refused, HasSubstr("256 samples"));  // of 264, which were published
  const Forecast smaller = answer(costs(400), where, 8, 512, 2400);
  EXPECT_LT(efficiency(smaller, 3), efficiency(weak, 3));  // 300 each
  const Range& known = smaller.offers[3].efficiency;
  EXPECT_LT(known.low, known.value);
  EXPECT_GT(known.high, known.value);
}

TEST(Preset, ADeviceWithoutASampleIsRefused) {
  const Forecast f = answer(costs(100), cluster(200), 1024, 512, 1000);
  EXPECT_THAT(f.offers.back().refused, HasSubstr("1000 samples"));
}

TEST(Preset, EveryRowIsPredictedAndHasAnInterval) {
  const Forecast f = answer(costs(100), cluster(200), 16);
  EXPECT_TRUE(f.measured.empty());
  ASSERT_EQ(f.offers.size(), 5u);  // 1, 2, 4, 8 and 16
  for (const Offer& offer : f.offers) {
    EXPECT_EQ(offer.evidence, Evidence::kPredicted);
    EXPECT_LT(offer.per_s.low, offer.per_s.value) << offer.devices;
    EXPECT_GT(offer.per_s.high, offer.per_s.value) << offer.devices;
    // That of one GPU, of which it is a multiple, is not wider.
    EXPECT_GE(offer.per_s.high / offer.per_s.low,
              f.offers.front().per_s.high / f.offers.front().per_s.low * (1 - 1e-9));
  }
}

TEST(Preset, TheJsonHoldsTheWholeAnswer) {
  const Forecast f = answer(costs(100), cluster(200), 16);
  const nlohmann::json json = to_json(f);
  EXPECT_TRUE(json["measured"].empty());
  EXPECT_EQ(json["predicted"].size(), 5u);
  EXPECT_EQ(render(forecast_from_json(json, "x"), false), render(f, false));
}

TEST(Preset, WhatWasNeverPublishedIsRefused) {
  EXPECT_THAT(refusal(costs(10, "recurrences")), HasSubstr("recurrences"));
  EXPECT_THAT(refusal(costs(10), {"f32", 512}), HasSubstr("--precision"));
  EXPECT_THAT(refusal(costs(10), {"tf32", 512}, "b200x8"), HasSubstr("B200"));
  EXPECT_THAT(refusal(costs(10), {"bf16", 64}), HasSubstr("--batch-per-device 264 or more"));
  EXPECT_THAT(refusal(costs(10), {"bf16", 512, 64}), HasSubstr("--global-batch 264 or more"));
  EXPECT_EQ(refusal(costs(10), {"bf16", 264}), "");
}

TEST(Preset, TheChipIsAWholeWordOfTheDevicesName) {
  const auto known = [](const char* device) {
    Cluster c = find_cluster("a100x4");
    c.device = device;
    try {
      preset(costs(10), c, {"bf16", 512});
      return true;
    } catch (const InputError&) {
      return false;
    }
  };
  for (const char* device :
       {"H100", "NVIDIA H100 80GB HBM3", "A100-SXM4-80GB", "NVIDIA RTX 6000 Ada Generation"})
    EXPECT_TRUE(known(device)) << device;
  for (const char* device :
       {"NVIDIA GH200 480GB", "V100S", "NVIDIA H100 PCIe", "A100-PCIE-40GB", "cpu"})
    EXPECT_FALSE(known(device)) << device;
}

}  // namespace
}  // namespace howmany::reports
