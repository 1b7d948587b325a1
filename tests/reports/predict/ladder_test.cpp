// SPDX-License-Identifier: Apache-2.0
#include "reports/predict/ladder.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "reports/predict/decide.h"
#include "reports/predict/forecast.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr int kNode = 8;

std::vector<RateAt> linear(std::initializer_list<int> counts) {
  std::vector<RateAt> rates;
  for (const int n : counts) rates.push_back({n, 100.0 * n});
  return rates;
}

std::string rung(std::initializer_list<int> counts, int devices) {
  return rung_used(linear(counts), devices, kNode).name;
}

TEST(Ladder, TheRungDependsOnWhatWasMeasuredAndOnTheNode) {
  EXPECT_EQ(rung({1}, 8), "one");
  EXPECT_EQ(rung({1, 2}, 8), "some");
  EXPECT_EQ(rung({1, 4}, 16), "across");
  EXPECT_EQ(rung({1, 8}, 16), "node");
  EXPECT_EQ(rung({8}, 16), "base");
  EXPECT_EQ(rung({1, 8, 16}, 64), "nodes");
}

TEST(Ladder, TheIntervalHoldsThePredictionAndNarrowsOnEachRung) {
  double before = INFINITY;
  for (const auto& known : {linear({1}), linear({1, 2, 8}), linear({1, 2, 8, 16})}) {
    const Predicted p = predict(known, 32, kNode);
    EXPECT_LT(p.per_s.low, p.per_s.value);
    EXPECT_GT(p.per_s.high, p.per_s.value);
    EXPECT_NEAR(p.per_s.value, 3200 * p.efficiency.value, 1e-9);
    const double width = p.per_s.high / p.per_s.low;
    EXPECT_LT(width, before);
    before = width;
  }
}

// The loss at 4 from 1 and 2, with d = 1: y = (1 + b) y(2), b = 0.3029.
TEST(Ladder, TheLossGrowsWithTheMeasuredLoss) {
  const Predicted p = predict({{1, 100}, {2, 180}}, 4, kNode);
  EXPECT_NEAR(p.efficiency.value, std::pow(0.9, 1.3029), 1e-12);
  EXPECT_NEAR(p.per_s.value, 400 * std::pow(0.9, 1.3029), 1e-9);
}

TEST(Ladder, LessKnowledgeIsNeverNarrower) {
  const auto width = [](const std::vector<RateAt>& known, int devices) {
    const Range rate = predict(known, devices, kNode).per_s;
    return rate.high / rate.low;
  };
  for (const double of_8 : {800.0, 760.0, 700.0, 600.0}) {
    for (const int devices : {16, 24, 64}) {
      EXPECT_GE(width({{8, of_8}}, devices), width({{1, 100}, {8, of_8}}, devices));
      EXPECT_GE(width({{1, 100}}, devices), width({{1, 100}, {8, of_8}}, devices));
    }
    EXPECT_GE(width({{1, 100}}, 8), width({{1, 100}, {2, of_8 / 4}}, 8));
  }
}

// mlfoundations/open_clip#466: 240 samples/s on 8 GPUs, 160 on 16 and 120 on 24.
TEST(Ladder, WithoutARateOfTheNetworkTheIntervalHoldsSlowOnes) {
  for (const auto& known : {std::vector<RateAt>{{8, 240}}, {{1, 30}}, {{1, 31}, {2, 60}, {4, 120}}})
    for (const auto& [devices, rate] : {std::pair(16, 160.0), {24, 120.0}}) {
      EXPECT_TRUE(holds_slow_networks(known, devices, kNode));
      EXPECT_LT(predict(known, devices, kNode).per_s.low, rate / 2);
    }
  EXPECT_FALSE(holds_slow_networks({{8, 240}, {16, 460}}, 32, kNode));
  EXPECT_FALSE(holds_slow_networks({{1, 30}}, 8, kNode));
  // Two nodes were measured: only the growth of the ring is unknown.
  EXPECT_GT(predict({{16, 160}}, 32, kNode).efficiency.low, 0.5);
}

TEST(Ladder, ALossOfAboutZeroIsNoLicence) {
  for (const double of_2 : {200.0, 201.0, 220.0}) {
    const Predicted p = predict({{1, 100}, {2, of_2}}, 8, kNode);
    EXPECT_LE(p.efficiency.value, 1);
    EXPECT_LE(p.efficiency.high, of_2 / 200 + 1e-12);
    EXPECT_LT(p.efficiency.low, 0.9);
  }
  EXPECT_LT(predict({{1, 740}, {2, 1481.3}}, 8, kNode).per_s.low, 5000);
}

TEST(Forecast, SaysThatTheRateOnOneMayBeTooLow) {
  const auto notes = [](double of_2) {
    return forecast({.rates = {{1, 100}, {2, of_2}}}, {}).sentences.size();
  };
  EXPECT_EQ(notes(215), notes(200) + 1);
  EXPECT_EQ(notes(200.2), notes(200));
}

TEST(Ladder, AKnownLossMovesTheIntervalAndDoesNotNarrowIt) {
  for (const int devices : {2, 8, 64}) {
    double before = 1.3;
    for (const double loss : {0.0, 0.05, 0.5, 2.0}) {
      const Range e = predict(linear({1}), devices, kNode, loss).efficiency;
      EXPECT_NEAR(e.value, std::exp(-loss), 1e-12);
      EXPECT_GE(e.value / e.low, before * (1 - 1e-12)) << devices << " " << loss;
      before = e.value / e.low;
    }
  }
  EXPECT_GT(predict(linear({1}), 64, kNode, 0.0).efficiency.low, 0.2) << "known network";
}

TEST(Ladder, TheUnitOfTheRateDoesNotMatter) {
  const Predicted a = predict({{1, 100}, {2, 180}}, 8, kNode),
                  b = predict({{1, 1e-4}, {2, 1.8e-4}}, 8, kNode);
  EXPECT_NEAR(a.efficiency.low, b.efficiency.low, 1e-12);
  EXPECT_NEAR(a.per_s.value, 1e6 * b.per_s.value, 1e-6);
}

TEST(Ladder, PredictsNoFurtherThanTheCurvesReach) {
  EXPECT_THAT(predict(linear({1, 8, 16}), 256, kNode).refused, IsEmpty());
  EXPECT_THAT(predict(linear({1, 8, 16}), 512, kNode).refused, ::testing::Not(IsEmpty()));
}

TEST(Ladder, RefusesRatesThatAreNone) {
  EXPECT_THROW(predict({}, 2, kNode), InputError);
  EXPECT_THROW(predict({{1, 0}}, 2, kNode), InputError);
  EXPECT_THROW(predict({{1, NAN}}, 2, kNode), InputError);
  EXPECT_THROW(predict({{0, 1}}, 2, kNode), InputError);
  EXPECT_THROW(predict({{2, 1}, {2, 1}}, 4, kNode), InputError);
  EXPECT_THROW(predict({{1, 1}, {4, 3}}, 4, kNode), InputError);
}

TEST(Ladder, TheNextRunIsTheOneThatNarrowsMost) {
  EXPECT_EQ(next_run(linear({1}), 8, kNode)->devices, 2);
  EXPECT_EQ(next_run(linear({1, 2, 8}), 64, kNode)->devices, 16);
  EXPECT_FALSE(next_run(linear({1, 8, 16}), 64, kNode));
}

TEST(Forecast, AsksForTheMostGpusWhoseIntervalReachesTheTarget) {
  ForecastOptions options;
  const Forecast f = forecast({.rates = linear({1, 2, 4})}, options);
  EXPECT_EQ(f.recommended, 8);
  EXPECT_THAT(f.rows, ElementsAre(Field(&ForecastRow::devices, 1), Field(&ForecastRow::devices, 2),
                                  Field(&ForecastRow::devices, 4), Field(&ForecastRow::devices, 8),
                                  Field(&ForecastRow::devices, 16)));
  EXPECT_EQ(forecast({.rates = {{1, 100}, {2, 100}}}, options).recommended, 1);
}

// 100 samples/s on 1 GPU: 3.6 M samples take 10 hours there.
TEST(Forecast, MeetsALimitOfTimeWithTheFewestGpus) {
  ForecastOptions options;
  options.samples = 3.6e6;
  options.finish_within_hours = 10;
  EXPECT_EQ(forecast({.rates = linear({1, 2, 4})}, options).recommended, 1);
  options.finish_within_hours = 5;
  EXPECT_EQ(forecast({.rates = linear({1, 2, 4})}, options).recommended, 2);
  options.finish_within_hours = 1.9;
  const Forecast f = forecast({.rates = linear({1, 2, 4})}, options);
  ASSERT_EQ(f.recommended, 8);
  EXPECT_LT(hours(f.rows[3], 3.6e6).high, 1.9);
  EXPECT_GT(hours(f.rows[2], 3.6e6).low, 1.9);
  options.finish_within_hours = 0.01;
  EXPECT_FALSE(forecast({.rates = linear({1, 2, 4})}, options).recommended);
}

TEST(Forecast, KeepsToTheBudgetAtTheUnfavourableEnd) {
  ForecastOptions options;
  options.samples = 3.6e6;
  options.budget_device_hours = 10.0;
  EXPECT_EQ(forecast({.rates = linear({1, 2, 4})}, options).recommended,
            4);  // measured: 10 exactly
  options.budget_device_hours = 9.0;
  EXPECT_FALSE(forecast({.rates = linear({1, 2, 4})}, options).recommended);
  options.budget_device_hours = 100.0;
  EXPECT_EQ(forecast({.rates = linear({1, 2, 4})}, options).recommended, 8);
  options.samples.reset();
  EXPECT_THROW(forecast({.rates = linear({1})}, options), InputError);
}

TEST(Forecast, RefusesTrainingThatWaitsForTheLoadersOfTheNode) {
  const auto refused = [](double on_one, double on_two) {
    Summary summary;
    for (const auto& [devices, wait] : {std::pair("1", on_one), std::pair("2", on_two)})
      summary.measurements.push_back(
          {"speedup",
           "case",
           {{"devices", devices}, {"model", "mlp"}, {"scaling", "weak"}, {"device_list", "cuda:0"}},
           {{"samples_per_s", {100, "1/s", {}, {}, 3, "rounds"}},
            {"data_wait_fraction", {wait, "", {}, {}, 3, "rounds"}}},
           {}});
    try {
      trained_in(summary);
      return false;
    } catch (const InputError& why) {
      return std::string(why.what()).starts_with("training waits ");
    }
  };
  EXPECT_TRUE(refused(0.02, 0.4));
  EXPECT_TRUE(refused(0, 0.25));
  EXPECT_FALSE(refused(0.4, 0.45));  // each device has too few workers
  EXPECT_FALSE(refused(0, 0.1));
  EXPECT_FALSE(refused(NAN, 0.4));
  EXPECT_FALSE(refused(0.02, NAN));
}

// Each number of devices was rehearsed: 0.8 on 2, and 4 failed.
TEST(Forecast, NumbersThatCannotBeReplayedAreRehearsed) {
  ClusterSteps r;
  r.cluster = find_cluster("a100x8");
  r.replayable = false;
  r.efficiency_by_devices = {{2, 0.8}, {8, 0.4}};
  r.failure_by_devices = {{4, "no memory"}};
  ForecastOptions options;
  options.up_to = 8;
  const Forecast f = forecast({.what = "mlp", .strong = true, .rates = {{1, 100}}}, options, r);
  ASSERT_EQ(f.rows.size(), 4U);
  EXPECT_NEAR(f.rows[1].efficiency.value, 0.8, 1e-9);
  EXPECT_NEAR(f.rows[3].per_s.value, 8 * 40, 1e-6);
  EXPECT_EQ(f.rows[1].evidence, Evidence::kRehearsed);
  EXPECT_EQ(f.rows[2].refused, "no memory");
  EXPECT_TRUE(f.strong);
  r.other_cluster = true;
  for (const ForecastRow& row : forecast({.rates = {{1, 100}}}, options, r).rows)
    EXPECT_EQ(row.refused.empty(), row.is_measured()) << row.devices;
  r.log = {8, {{1, {}}}};  // as of FSDP
  const Forecast replayed = forecast({.rates = {{1, 100}}}, options, r);
  EXPECT_EQ(replayed.rows[3].evidence, Evidence::kPredicted);
  EXPECT_TRUE(replayed.rows[3].refused.empty());
  EXPECT_FALSE(replayed.rows[1].refused.empty());
}

// Computed steps are those of 1 device, so the measured loss on 2 stays in the rows beyond.
TEST(Forecast, ComputedStepsGoOnFromTheMeasuredLoss) {
  ClusterSteps s;
  s.cluster = find_cluster("a100x8");
  s.replayable = false;
  s.computed = true;
  s.efficiency_by_devices = {{2, 0.9}, {4, 0.45}};
  s.failure_by_devices = {{8, "3 layers to divide, 8 stages"}};
  ForecastOptions options;
  options.up_to = 8;
  const Forecast f = forecast({.rates = {{1, 100}, {2, 160}}}, options, s);
  EXPECT_NEAR(f.rows[2].efficiency.value, 0.8 * 0.5, 1e-9);
  EXPECT_EQ(f.rows[2].evidence, Evidence::kPredicted);
  EXPECT_EQ(f.rows[3].refused, "3 layers to divide, 8 stages");
  EXPECT_NEAR(forecast({.rates = {{1, 100}}}, options, s).rows[1].efficiency.value, 0.9, 1e-9);
}

TEST(Forecast, StragglersSlowMoreGpusDown) {
  ClusterSteps r;
  r.cluster = find_cluster("a100x8");
  r.log = {8, {{1, {}}, {1, {}}}};
  ForecastOptions options;
  options.up_to = 8;
  const auto loss = [&](const std::vector<RateAt>& rates, size_t row) {
    return -std::log(forecast({.rates = rates}, options, r).rows[row].efficiency.value);
  };
  EXPECT_NEAR(loss({{1, 100}}, 3), 0, 1e-9);
  r.spread = 0.02;
  EXPECT_NEAR(loss({{1, 100}}, 3), std::log(straggler_factor(0.02, 8)), 1e-9);
  const double more = straggler_factor(0.02, 8) / straggler_factor(0.02, 4);
  EXPECT_NEAR(loss({{1, 100}, {4, 400}}, 2), std::log(more), 1e-9) << "4 measured ones have theirs";
}

TEST(Forecast, TakesTheFastestOfEachNumberOfGpus) {
  Summary summary;
  const auto add = [&](const char* devices, double rate, const char* list,
                       std::vector<std::string> flags = {}) {
    summary.measurements.push_back(
        {"speedup",
         "case",
         {{"devices", devices}, {"model", "mlp"}, {"scaling", "weak"}, {"device_list", list}},
         {{"samples_per_s", {rate, "1/s", {}, {}, 3, "rounds"}}},
         std::move(flags)});
  };
  add("1", 100, "cuda:0");
  add("2", 180, "cuda:0,cuda:1");
  add("2", 190, "cuda:0,cuda:1");
  add("4", 999, "cuda:0,cuda:1", {"failed: no memory"});
  const Trained trained = trained_in(summary);
  EXPECT_THAT(trained.rates, ElementsAre(Field(&RateAt::per_s, 100), Field(&RateAt::per_s, 190)));
  EXPECT_EQ(trained.what, "mlp");
  EXPECT_FALSE(trained.strong);
  for (Measurement& m : summary.measurements) m.parameters["scaling"] = "strong";
  EXPECT_THROW(trained_in(summary), InputError);
  EXPECT_TRUE(trained_in(summary, ClusterSteps{}).strong);
  summary.measurements.resize(1);
  summary.measurements[0].parameters["scaling"] = "neither";
  EXPECT_THROW(trained_in(summary, ClusterSteps{}), InputError);
  summary.measurements[0].parameters = {
      {"devices", "1"}, {"model", "mlp"}, {"scaling", "weak"}, {"device_list", "cpu:0"}};
  EXPECT_THROW(trained_in(summary), InputError);
}

}  // namespace
}  // namespace howmany::reports
