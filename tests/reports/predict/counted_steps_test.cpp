// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/counted_steps.h"

#include <gmock/gmock.h>

#include "core/base/error.h"
#include "reports/predict/forecast_json.h"
#include "reports/predict/rungs.h"
#include "tests/reports/predict/counted_examples.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

// Every all-reduce takes `seconds`, at any size and on any number of devices.
Cluster same_times(double seconds) {
  Cluster c;
  c.name = "c";
  c.device = "A100";
  c.devices_per_node = 64;
  for (const int n : {2, 64}) c.node.all_reduce[n] = {{1, seconds}, {1e15, 1.0001 * seconds}};
  return c;
}

ForecastOptions up_to_two() {
  ForecastOptions options;
  options.up_to = 2;
  options.devices_per_node = 64;
  return options;
}

CountedScript script(const std::vector<nlohmann::json>& counts) {
  CountedScript s{"train.py", {}};
  for (const nlohmann::json& one : counts) {
    const CountedStep step = count_of(one);
    s.counts[step.world] = step;
  }
  return s;
}

double loss_on_two(const CountedScript& s, double seconds) {
  const Forecast f = forecast(s, same_times(seconds), up_to_two());
  return -std::log(f.rows[1].efficiency.value);
}

TEST(CountedSteps, NothingHidesTheBucketThatIsReadyLast) {
  for (const auto& s : {script({count_json()}), script({count_json(1), count_json(2)})}) {
    const double step = op_times(s.alone(), "A100").step.value;
    EXPECT_NEAR(loss_on_two(s, 5 * step), std::log(6) + kRestInNode, 1e-3);
    EXPECT_NEAR(loss_on_two(s, 1e-9), kRestInNode, 1e-3);
  }
}

TEST(CountedSteps, ACollectiveIsHiddenUntilItIsWaitedFor) {
  nlohmann::json many = count_json(2);
  many["order"] = {-1, 0, 1, 2};
  many["collectives"][0]["waited"] = 2;  // before the backward pass
  const CountedScript s = script({count_json(), many});
  const OpTimes times = op_times(s.largest(), "A100");
  const double forward = times.begin[2];
  EXPECT_NEAR(loss_on_two(s, forward), kRestInNode, 1e-3);
  EXPECT_NEAR(loss_on_two(s, forward + times.step.value), std::log(2) + kRestInNode, 1e-3);
}

TEST(CountedSteps, WithoutAGroupBucketsAreThoseOfDdp) {
  nlohmann::json json = count_json();
  json["order"] = nlohmann::json::array();
  json["gradients"] = nlohmann::json::array();
  for (int i = 0; i < 20; ++i) {
    json["order"].push_back(1);
    json["gradients"].push_back({i + 1, 4 << 20});
  }
  const CountedStep step = count_of(json);
  const OpTimes times = op_times(step, "A100");
  const auto calls = log_of(step, times).steps[0].collectives;
  ASSERT_EQ(calls.size(), 4U);
  const double mib = 1 << 20;
  EXPECT_EQ(calls[0].bytes, 4 * mib);  // the first of at least 1 MiB
  EXPECT_EQ(calls[1].bytes, 28 * mib);
  EXPECT_EQ(calls[3].bytes, 20 * mib);
  EXPECT_NEAR(calls[0].at, times.step.value / 20, 1e-9);
  EXPECT_NEAR(calls[3].at, times.step.value, 1e-9);
}

TEST(CountedSteps, PassesOfMicroBatchesAreApart) {
  nlohmann::json json = count_json(2);
  json["micro_batches"] = 2;
  json["order"] = {0, 1, -1, 0, 1, -2, 2};
  json["collectives"].push_back(json["collectives"][0]);
  json["gradients"] = {{6, 30 << 20}};
  const CountedStep step = count_of(json);
  const auto calls = log_of(step, op_times(step, "A100")).steps[0].collectives;
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].backward, 0);
  EXPECT_EQ(calls[1].backward, 1);
}

TEST(CountedSteps, OtherSamplesOfARankAreStrongScaling) {
  EXPECT_FALSE(is_strong(script({count_json(1), count_json(4)})));
  EXPECT_FALSE(is_strong(script({count_json(1, 0), count_json(4, 8)})));
  const CountedScript s = script({count_json(1), count_json(2, 16)});
  EXPECT_TRUE(is_strong(s));
  // The ranks take as long as one alone, for half of the samples.
  EXPECT_NEAR(loss_on_two(s, 1e-9), std::log(2) + kRestInNode, 1e-3);
  ForecastOptions options = up_to_two();
  options.up_to = 4;
  EXPECT_NE(forecast(s, same_times(1e-9), options).rows[2].refused, "");
}

TEST(CountedSteps, ReservedBytesAreLinearInTheShare) {
  nlohmann::json many = count_json(4);
  many["memory"]["reserved"] = 0.8e9;
  const CountedScript s = script({count_json(1), many});  // 0.4 GB and 1.6 GB that FSDP divides
  EXPECT_NEAR(reserved_on(s, 1), 2e9, 1);
  EXPECT_NEAR(reserved_on(s, 2), 1.2e9, 1);
  EXPECT_NEAR(reserved_on(s, 8), 0.6e9, 1);
  const CountedScript alone = script({count_json()});
  EXPECT_NEAR(reserved_on(alone, 8), 2e9 + (30 << 20), 1);
}

TEST(CountedSteps, RefusesRowsThatReserveMoreThanNineTenths) {
  Cluster c = same_times(1e-6);
  c.memory_gb = 2.1;
  const Forecast f = forecast(script({count_json()}), c, up_to_two());
  EXPECT_NE(f.rows[0].refused, "");
  EXPECT_NE(f.rows[1].refused, "");
  EXPECT_FALSE(f.recommended);
  c.memory_gb = 2.3;
  EXPECT_EQ(forecast(script({count_json()}), c, up_to_two()).rows[1].refused, "");
}

TEST(CountedSteps, ShardsOfTheOptimizerShrink) {
  nlohmann::json many = count_json(4);
  many["kinds"][2]["read"] = 0.25e9;
  const CountedScript s = script({count_json(1), many});
  ForecastOptions options = up_to_two();
  options.up_to = 8;
  const Forecast f = forecast(s, same_times(1e-9), options);
  const auto loss = [&](size_t row) {
    return -std::log(f.rows[row].efficiency.value) - kRestInNode * static_cast<double>(row);
  };
  const OpTimes one = op_times(s.alone(), "A100"), four = op_times(s.largest(), "A100");
  EXPECT_NEAR(loss(2), std::log(four.step.value / one.step.value), 1e-3);
  EXPECT_GT(loss(1), loss(2));
  EXPECT_LT(loss(3), loss(2));
}

TEST(CountedSteps, AGroupThatExchangesNothingIsRefused) {
  nlohmann::json many = count_json(2);
  many["order"] = {0, 1, 2};
  many["collectives"] = nlohmann::json::array();
  const CountedScript s = script({count_json(), many});
  EXPECT_THAT(message_of<InputError>([&] { forecast(s, same_times(1), up_to_two()); }),
              HasSubstr("gradients"));
}

TEST(CountedSteps, TheLoaderNeedsTheCoresOfItsBatches) {
  nlohmann::json json = count_json();
  json["loader"] = {{"core_s_per_batch", 1}, {"samples", 64}, {"workers", 4}};
  const Forecast f = forecast(script({json}), same_times(1e-6), up_to_two());
  const double step = op_times(count_of(json), "A100").step.value;
  EXPECT_NEAR(f.counted["loader_cores_per_gpu"].get<double>(), 0.5 / step, 1e-9);
}

TEST(CountedSteps, NoRowIsFasterThanTheLoaderOfItsNode) {
  nlohmann::json json = count_json();
  const CountedScript free = script({json});
  const double step = op_times(free.alone(), "A100").step.value, samples = free.alone().samples;
  json["loader"] = {{"core_s_per_batch", 40 * step}, {"samples", samples}, {"workers", 4}};
  Cluster cluster = same_times(1e-9);
  cluster.cores_per_node = 10 * cluster.devices_per_node;
  const Forecast f = forecast(script({json}), cluster, up_to_two());
  EXPECT_NEAR(f.rows[0].per_s.value, samples / (4 * step), 1e-6 * f.rows[0].per_s.value);
  EXPECT_NEAR(f.rows[1].efficiency.value, std::exp(-kRestInNode), 1e-3);
}

TEST(CountedSteps, TheForecastSurvivesItsJson) {
  const Forecast f = forecast(script({count_json()}), same_times(1e-6), up_to_two());
  const nlohmann::json json = to_json(f);
  EXPECT_EQ(json["predicted"][0]["rung"], "count");
  EXPECT_TRUE(json["measured"].empty());
  EXPECT_EQ(nlohmann::json(to_json(forecast_from_json(json, "x"))), json);
}

}  // namespace
}  // namespace howmany::reports
