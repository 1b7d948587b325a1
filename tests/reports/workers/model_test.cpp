// SPDX-License-Identifier: Apache-2.0
// Tests the model of a loader against values computed by hand.
#include "reports/workers/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/results/record.h"
#include "tests/reports/workers/examples.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

TEST(WorkersModel, ReadsWhatTheProbesTold) {
  const LoaderProbes probes = example_probes();
  EXPECT_DOUBLE_EQ(probes.sample_s, 2e-3);
  EXPECT_DOUBLE_EQ(probes.decode_s, 1.2e-3);
  EXPECT_DOUBLE_EQ(probes.cores, 4);
  EXPECT_EQ(probes.batch_s.size(), 4u);
  EXPECT_EQ(probes.cold_files_per_s.at(4), 800);
  EXPECT_EQ(probes.warm_files_per_s.size(), 1u);
}

TEST(WorkersModel, AWorkerThatIsAProcessTakesLongerThanTheCaller) {
  nlohmann::json json = nlohmann::json::parse(kLoaderProbes);
  json["benchmarks"].push_back({{"name", "loader/probe/worker/as:pytorch/batch:64"},
                                {"run_type", "iteration"},
                                {"real_time", 1},
                                {"time_unit", "ms"},
                                {"sample_s", 3e-3}});
  SampleLine line;
  line.name = "loader/probe/solo/batch:64";
  line.seconds = {0.128};
  const LoaderProbes probes = probes_from(bench_from_json(json, "probes"), {line});
  EXPECT_DOUBLE_EQ(predicted_rate(probes, {}, 0), 500);
  EXPECT_DOUBLE_EQ(probes.sample_s, 3e-3);
  EXPECT_DOUBLE_EQ(probes.rest_s, 1.1e-3);
  EXPECT_DOUBLE_EQ(probes.batch_s[0], 0.192);
}

TEST(WorkersModel, ProbesThatFailedAreToldByName) {
  const auto refused = [](const char* text) {
    try {
      probes_from(bench_from_json(nlohmann::json::parse(text), "l"), {});
    } catch (const InputError& e) {
      return std::string(e.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused(R"({"context": {}, "benchmarks": []})"), HasSubstr("probe/solo"));
  EXPECT_THAT(refused(R"({"context": {}, "benchmarks": [{"name": "loader/probe/solo/batch:1",
      "run_type": "iteration", "error_occurred": true, "error_message": "disk gone"}]})"),
              HasSubstr("disk gone"));
}

// Returns the probes of one worker with one counter changed.
LoaderProbes with_solo(const char* counter, double value, double lets_go = 1.2) {
  nlohmann::json json = nlohmann::json::parse(kLoaderProbes);
  json["benchmarks"][0][counter] = value;
  json["benchmarks"][0]["lets_go_of_core"] = lets_go;
  json["benchmarks"][0]["read_s"] = 1e-3;
  SampleLine line;
  line.name = "loader/probe/solo/batch:64";
  line.seconds = {0.128};
  return probes_from(bench_from_json(json, "probes"), {line});
}

TEST(WorkersModel, WaitingForStorageKeepsNoCoreBusy) {
  const LoaderProbes probes = with_solo("on_core_s", 1.2e-3);
  EXPECT_DOUBLE_EQ(probes.waiting_s, 8e-4);
  EXPECT_DOUBLE_EQ(core_s(probes), 1.2e-3);
  EXPECT_NEAR(predicted_rate(probes, {}, 1), 500, 5);
  EXPECT_NEAR(predicted_rate(probes, {}, 64), 4 / 1.2e-3, 5);
}

TEST(WorkersModel, ACoreSharedWithOthersIsNotWaitingForStorage) {
  EXPECT_DOUBLE_EQ(with_solo("on_core_s", 1.7e-3).waiting_s, 0);
  EXPECT_DOUBLE_EQ(with_solo("on_core_s", 0.2e-3).waiting_s, 1e-3);  // at most the reading time
}

TEST(WorkersModel, ACoreThatAQuotaTakesAwayIsNotWaitingForStorage) {
  EXPECT_DOUBLE_EQ(with_solo("on_core_s", 1e-3, 0.2).waiting_s, 0);
  EXPECT_DOUBLE_EQ(with_solo("on_core_s", 1e-3, 0.9).waiting_s, 1e-3);
}

TEST(WorkersModel, StorageThatStillGainsFromMoreThreadsHasNoBoundYet) {
  EXPECT_TRUE(std::isinf(storage_bound({{1, 430}, {2, 860}, {4, 1640}, {8, 3000}}, 1)));
  EXPECT_DOUBLE_EQ(storage_bound({{1, 430}, {2, 860}, {4, 1000}, {8, 1100}}, 1), 1100);
  EXPECT_DOUBLE_EQ(storage_bound({{1, 430}, {2, 860}, {4, 800}}, 2), 430);
}

TEST(WorkersModel, RateGrowsWithWorkersUpToTheCores) {
  const LoaderProbes probes = example_probes();
  const LoaderDemand asked;
  EXPECT_DOUBLE_EQ(predicted_rate(probes, asked, 0), 500);
  EXPECT_NEAR(predicted_rate(probes, asked, 1), 500, 5);
  EXPECT_NEAR(predicted_rate(probes, asked, 64), 2000, 5);  // 4 cores
  for (int w = 1; w < 20; ++w)
    EXPECT_LE(predicted_rate(probes, asked, w), predicted_rate(probes, asked, w + 1) + 1e-9);
}

TEST(WorkersModel, TheLeastBoundLimits) {
  LoaderProbes probes = example_probes();
  probes.handover_s = 1e-2;
  EXPECT_NEAR(predicted_rate(probes, {}, 64), 100, 1);
  probes = example_probes();
  probes.warm_files_per_s = {{1, 50}, {8, 300}};
  EXPECT_NEAR(predicted_rate(probes, {}, 64), 300, 3);
  EXPECT_NEAR(predicted_rate(probes, {.devices = 3}, 64), 100, 1);
}

TEST(WorkersModel, DevicesShareTheCoresAndTrainingTakesOneEach) {
  const LoaderProbes probes = example_probes();
  EXPECT_DOUBLE_EQ(cores_bound(probes, {}), 4 / 2e-3);
  EXPECT_DOUBLE_EQ(cores_bound(probes, {.devices = 2}), 2 / 2e-3);
  EXPECT_DOUBLE_EQ(cores_bound(probes, {.devices = 1, .demand = 10}), 3 / 2e-3);
  EXPECT_DOUBLE_EQ(cores_bound(probes, {.devices = 8, .demand = 10}), 0.25 / 2e-3);  // never 0
}

TEST(WorkersModel, EvenBatchesStallOnlyWhenTooSlow) {
  EXPECT_NEAR(replayed_stall({0.1}, 0.2, 1, 2), 0, 1e-9);
  EXPECT_NEAR(replayed_stall({0.1}, 0.05, 1, 2), 0.5, 1e-3);
  EXPECT_NEAR(replayed_stall({0.1}, 0.05, 2, 2), 0, 1e-9);
  EXPECT_NEAR(replayed_stall({0.1}, 0.1, 0, 2), 0.5, 1e-3);  // loading and training alternate
}

TEST(WorkersModel, UnevenBatchesStallAndPrefetchHelps) {
  std::vector<double> uneven(99, 0.1);
  uneven.push_back(1);  // one in a hundred takes ten times as long
  const double at2 = replayed_stall(uneven, 0.1 / 6, 8, 2);
  const double at16 = replayed_stall(uneven, 0.1 / 6, 8, 16);
  EXPECT_GT(at2, 0.1);
  EXPECT_LT(at16, at2 / 2);
}

// Brute-force simulation: advances a clock in small steps instead of solving for times.
double stepped_stall(double make, double step, int workers, int prefetch, int batches) {
  const double tick = 1e-4;
  std::vector<double> busy_until(static_cast<size_t>(workers), 0);
  std::vector<double> ready;
  double train_until = 0, waited = 0;
  int taken = 0;
  for (double now = 0; taken < batches; now += tick) {
    const int window = taken + workers * prefetch;
    while (static_cast<int>(ready.size()) < window) {
      double& worker = busy_until[ready.size() % busy_until.size()];
      worker = std::max(worker, now) + make;
      ready.push_back(worker);
    }
    if (now < train_until) continue;
    if (ready[static_cast<size_t>(taken)] > now) {
      waited += tick;
      continue;
    }
    ++taken;
    train_until = now + step;
    if (taken == workers * prefetch) waited = 0;
  }
  return waited / (step * (batches - workers * prefetch) + waited);
}

TEST(WorkersModel, TheReplayAgreesWithAClock) {
  for (const int workers : {1, 2, 3})
    for (const double step : {0.02, 0.035, 0.06})
      EXPECT_NEAR(replayed_stall({0.1}, step, workers, 2),
                  stepped_stall(0.1, step, workers, 2, 400), 0.02)
          << workers << " workers, step " << step;
}

TEST(WorkersModel, NoDemandNoStall) {
  EXPECT_EQ(predicted_stall(example_probes(), {}, 1), 0);
  EXPECT_EQ(replayed_stall({}, 1, 1, 1), 0);
}

TEST(WorkersModel, StallFallsWithWorkers) {
  const LoaderProbes probes = example_probes();
  const LoaderDemand asked{.devices = 1, .demand = 1000, .prefetch = 2, .batch = 64};
  EXPECT_GT(predicted_stall(probes, asked, 1), 0.4);
  EXPECT_LT(predicted_stall(probes, asked, 3), 0.05);
}

}  // namespace
}  // namespace howmany::reports
