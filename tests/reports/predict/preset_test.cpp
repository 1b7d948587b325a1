// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/preset.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "core/base/error.h"
#include "reports/predict/forecast_json.h"
#include "reports/predict/rungs.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

// A sample has 1 GFLOP in the forward pass.
ModelWork net(const std::string& work = "convolutions") { return {"net", work, 1e9}; }

Cluster cluster(double gbit_per_s) {
  Cluster c = find_cluster("a100x4");
  c.network->links = 1;
  c.network->gbit_per_s = gbit_per_s;
  return c;
}

std::string refusal(const ModelWork& work, const PresetOptions& options = {},
                    const std::string& where = "a100x4") {
  return message_of<InputError>([&] { preset(work, find_cluster(where), options); });
}

// The exchange of each step takes `exchange` of a step of 512 samples, and nothing hides it.
Forecast answer(double exchange, const Cluster& where, int up_to, int64_t batch = 512,
                int64_t global_batch = 0) {
  ForecastOptions options;
  options.up_to = up_to;
  options.devices_per_node = where.devices_per_node;
  Preset p = preset(net(), where, {"bf16", batch, global_batch});
  for (const int n : counts_up_to(up_to, 1)) {
    const Portion each = portion_on(p, n);
    const auto step = [&](double fixed) {
      return static_cast<double>(each.micro_batches) * p.time(each.samples, fixed) +
             exchange * p.time(512, fixed);
    };
    const Range& fixed = p.time.fixed;
    p.steps[n].seconds = {step(fixed.value), step(fixed.low), step(fixed.high)};
  }
  return forecast("net", p, options);
}

TEST(Preset, AStepTakesItsFlopOverTheRateOfTheChip) {
  const Preset p = preset(net(), find_cluster("a100x4"), {"bf16", 512});
  EXPECT_NEAR(p.per_s.value, 52.5e12 / 3e9, 1);  // the rate in chip_rates.h
  EXPECT_NEAR(p.seconds, 512 / p.per_s.value, 1e-9);
  EXPECT_LT(p.per_s.low, 0.8 * p.per_s.value);
  EXPECT_GT(p.per_s.high, 1.2 * p.per_s.value);
  const Preset slower = preset(net(), find_cluster("a100x4"), {"tf32", 512});
  EXPECT_LT(slower.per_s.value, p.per_s.value);
}

TEST(Preset, TheUsualBatchIsAPowerOfTwoThatIsLargeEnough) {
  const Preset p = preset(net(), find_cluster("a100x4"), {});
  EXPECT_TRUE(std::has_single_bit(static_cast<uint64_t>(p.batch)));
  EXPECT_GE(static_cast<double>(p.batch) * 3e9, 0.79e12);
}

// Within a node and across nodes. The published curves were measured with exchanges of their own,
// of which the computed step has its part.
TEST(Preset, TheExchangeIsNotCountedTwice) {
  const Forecast slow = answer(0.5, cluster(10), 16);
  for (const size_t row : {2, 4}) {  // 4 and 16 GPUs
    const ForecastRow& r = slow.rows[row];
    const double rest = -std::log(r.efficiency.value) - std::log(1.5);
    EXPECT_NEAR(rest, (row == 2 ? kRestInNode : kRestAcross) * std::log2(r.devices), 1e-9);
  }
}

TEST(Preset, AHiddenExchangeLosesWhatPublishedCurvesLose) {
  const Forecast fast = answer(0, cluster(10'000), 16);
  EXPECT_NEAR(fast.rows.back().efficiency.value, std::exp(-4 * kRestAcross), 0.01);
}

TEST(Preset, KnowsTheBalanceOfTheChip) {
  const Preset p = preset(net("products"), find_cluster("h100x8"), {"bf16", 2048});
  EXPECT_NEAR(p.flop_per_byte, 205.9e12 / 3350e9, 0.1);
}

TEST(Preset, TheGlobalBatchIsTrainedInEqualMicroBatches) {
  const Preset p = preset(net(), find_cluster("a100x4"), {"bf16", 512, 4096});
  EXPECT_EQ(p.batch, 512);
  const double of_512 = preset(net(), find_cluster("a100x4"), {"bf16", 512}).seconds;
  EXPECT_NEAR(p.seconds, 8 * of_512, 1e-9);
  EXPECT_EQ(preset(net(), find_cluster("a100x4"), {"bf16", 512, 300}).batch, 300);
}

TEST(Preset, StrongScalingLosesBySmallSharesAndGainsByFewerExchanges) {
  const Cluster where = cluster(200);
  const Forecast weak = answer(0.1, where, 16), strong = answer(0.1, where, 16, 512, 4096);
  EXPECT_FALSE(weak.strong);
  EXPECT_TRUE(strong.strong);
  const auto efficiency = [](const Forecast& f, int row) { return f.rows[row].efficiency.value; };
  EXPECT_GT(efficiency(strong, 2), efficiency(weak, 2));          // 4 GPUs: 2 micro-batches of 512
  EXPECT_NEAR(efficiency(strong, 3), efficiency(weak, 3), 1e-9);  // 8 GPUs: one of 512
  EXPECT_THAT(strong.rows[4].refused, HasSubstr("256 samples"));  // of 264, which were published
  const Forecast smaller = answer(0.1, where, 8, 512, 2400);
  EXPECT_LT(efficiency(smaller, 3), efficiency(weak, 3));  // 300 each
  const Range& known = smaller.rows[3].efficiency;
  EXPECT_LT(known.low, known.value);
  EXPECT_GT(known.high, known.value);
}

TEST(Preset, ADeviceWithoutASampleIsRefused) {
  const Forecast f = answer(0.1, cluster(200), 1024, 512, 1000);
  EXPECT_THAT(f.rows.back().refused, HasSubstr("1000 samples"));
}

TEST(Preset, EveryRowIsPredictedAndHasAnInterval) {
  const Forecast f = answer(0.1, cluster(200), 16);
  EXPECT_TRUE(f.measured.empty());
  ASSERT_EQ(f.rows.size(), 5u);  // 1, 2, 4, 8 and 16
  for (const ForecastRow& row : f.rows) {
    EXPECT_EQ(row.evidence, Evidence::kPredicted);
    EXPECT_LT(row.per_s.low, row.per_s.value) << row.devices;
    EXPECT_GT(row.per_s.high, row.per_s.value) << row.devices;
    // That of one GPU, of which it is a multiple, is not wider.
    EXPECT_GE(row.per_s.high / row.per_s.low,
              f.rows.front().per_s.high / f.rows.front().per_s.low * (1 - 1e-9));
  }
}

TEST(Preset, TheJsonHoldsTheWholeAnswer) {
  const Forecast f = answer(0.1, cluster(200), 16);
  const nlohmann::json json = to_json(f);
  EXPECT_TRUE(json["measured"].empty());
  EXPECT_EQ(json["predicted"].size(), 5u);
  EXPECT_EQ(render(forecast_from_json(json, "x"), false), render(f, false));
}

TEST(Preset, WhatWasNeverPublishedIsRefused) {
  EXPECT_THAT(refusal(net("recurrences")), HasSubstr("recurrences"));
  EXPECT_THAT(refusal(net(), {"f32", 512}), HasSubstr("--precision"));
  EXPECT_THAT(refusal(net(), {"tf32", 512}, "b200x8"), HasSubstr("B200"));
  EXPECT_THAT(refusal(net(), {"bf16", 64}), HasSubstr("--batch-per-device 264 or more"));
  EXPECT_THAT(refusal(net(), {"bf16", 512, 64}), HasSubstr("--global-batch 264 or more"));
  EXPECT_NO_THROW(preset(net(), find_cluster("a100x4"), {"bf16", 264}));
}

TEST(Preset, TheChipIsAWholeWordOfTheDevicesName) {
  const auto known = [](const char* device) {
    Cluster c = find_cluster("a100x4");
    c.device = device;
    try {
      preset(net(), c, {"bf16", 512});
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
