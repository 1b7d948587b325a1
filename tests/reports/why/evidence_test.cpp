// SPDX-License-Identifier: Apache-2.0
#include "reports/why/evidence.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace howmany::reports {
namespace {

nlohmann::json two_ranks() {
  return nlohmann::json::parse(R"({
    "gpu": false, "ddp": true, "recording": 0.0003, "cores": 1, "threads": 4, "samples": 32,
    "gradient_bytes": 25e6, "workers": null, "persistent_workers": false, "loader_cpu_s": 0.01,
    "bucket_view": true,
    "bucket_cap": 26214400, "own_hook": false,
    "ranks": [
      {"step_s": 0.1, "data_s": 0.01, "epochs_s": 0.001, "outside_s": 0.002, "backward_s": 0.05,
       "optimizer_s": 0.005, "blocked_s": 0.003},
      {"step_s": 0.1}],
    "steps": [
      {"mode": "synced", "ranks": [
        {"train_s": 0.09, "backward_s": 0.05, "blocked_s": 0.02, "began_s": 1.7e9,
         "spans": [["data", 0, 0.01], ["backward", 0.02, 0.05]], "buckets": [[1e6, 0.03, 0.04]]},
        {"train_s": 0.08}]},
      {"mode": "noop", "ranks": [{"train_s": 0.05}, {"train_s": 0.05}]}]})");
}

void expect_refused(const std::string& pointer, const nlohmann::json& value,
                    const std::string& place) {
  nlohmann::json json = two_ranks();
  json[nlohmann::json::json_pointer(pointer)] = value;
  try {
    evidence_from(json, "a file");
    ADD_FAILURE() << pointer;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("[a file] " + place));
  }
}

TEST(StepEvidence, HasEveryMember) {
  const StepEvidence e = evidence_from(two_ranks(), "a file");
  EXPECT_FALSE(e.gpu);
  EXPECT_TRUE(e.ddp && e.bucket_view);
  EXPECT_FALSE(e.own_hook || e.persistent_workers);
  EXPECT_EQ(e.recording, 0.0003);
  EXPECT_EQ(e.cores, 1);
  EXPECT_EQ(e.threads, 4);
  EXPECT_EQ(e.samples, 32);
  EXPECT_EQ(e.gradient_bytes, 25e6);
  EXPECT_FALSE(e.workers);
  EXPECT_EQ(e.loader_cpu, 0.01);
  EXPECT_EQ(e.bucket_cap, 26214400);
  ASSERT_EQ(e.ranks.size(), 2);
  EXPECT_EQ(e.ranks[0].step, 0.1);
  EXPECT_EQ(e.ranks[0].data, 0.01);
  EXPECT_EQ(e.ranks[0].epochs, 0.001);
  EXPECT_EQ(e.ranks[0].outside, 0.002);
  EXPECT_EQ(e.ranks[0].backward, 0.05);
  EXPECT_EQ(e.ranks[0].optimizer, 0.005);
  EXPECT_EQ(e.ranks[0].blocked, 0.003);
  ASSERT_EQ(e.steps.size(), 2);
  EXPECT_EQ(steps_of(e, Mode::kAlone).size(), 0);
  ASSERT_EQ(steps_of(e, Mode::kSynced).size(), 1);
  const DetailStep& step = e.steps[0].ranks[0];
  EXPECT_EQ(step.train, 0.09);
  EXPECT_EQ(step.backward, 0.05);
  EXPECT_EQ(step.blocked, 0.02);
  EXPECT_EQ(step.began, 1.7e9);
  ASSERT_EQ(step.spans.size(), 2);
  EXPECT_EQ(step.spans[1].what, "backward");
  EXPECT_EQ(step.spans[1].at, 0.02);
  EXPECT_EQ(step.spans[1].seconds, 0.05);
  ASSERT_EQ(step.buckets.size(), 1);
  EXPECT_EQ(step.buckets[0].bytes, 1e6);
  EXPECT_EQ(step.buckets[0].at, 0.03);
  EXPECT_EQ(step.buckets[0].ended, 0.04);
}

TEST(StepEvidence, NamesThePlaceOfABadValue) {
  expect_refused("/ranks/0/step_s", 0, "ranks[0].step_s");
  expect_refused("/ranks/1/data_s", -1e-9, "ranks[1].data_s");
  expect_refused("/ranks", nlohmann::json::array(), "ranks");
  expect_refused("/workers", -1, "workers");
  expect_refused("/recording", -1, "recording");
  expect_refused("/steps/0/mode", "other", "steps[0].mode");
  expect_refused("/steps/0/ranks/1/train_s", -1, "steps[0].ranks[1].train_s");
  expect_refused("/steps/1/ranks/1", nullptr, "steps[1].ranks[1]");
  expect_refused("/steps/0/ranks/0/spans/0", {"data", 0}, "steps[0].ranks[0].spans[0]");
  expect_refused("/steps/0/ranks/0/spans/0/1", -1, "steps[0].ranks[0].spans[0][1]");
  expect_refused("/steps/0/ranks/0/buckets/0/2", 0.01, "steps[0].ranks[0].buckets[0]");
}

TEST(StepEvidence, RefusesStepsOfOtherRanks) {
  nlohmann::json json = two_ranks();
  json["steps"][1]["ranks"].erase(1);
  EXPECT_THROW(evidence_from(json, "a file"), InputError);
}

}  // namespace
}  // namespace howmany::reports
