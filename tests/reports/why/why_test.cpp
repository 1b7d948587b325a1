// SPDX-License-Identifier: Apache-2.0
#include "reports/why/why.h"

#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/schema/metrics.h"
#include "reports/why/model_parts.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Plan plan_of_script() {
  Plan plan;
  plan.request.workloads = {{"train.py", 0}};
  plan.request.script.words = {"python", "train.py"};
  plan.request.script.name = "train.py";
  plan.request.devices = {"cpu:0", "cpu:1"};
  plan.request.counts = {1, 2};
  plan.request.rounds = 1;
  return plan;
}

Json rank(double step, double data, double backward, double outside = 0) {
  return {{"step_s", step}, {"data_s", data}, {"backward_s", backward}, {"outside_s", outside}};
}

Json step_of(const char* mode, double train, double backward, double blocked) {
  const Json one = {{"train_s", train}, {"backward_s", backward}, {"blocked_s", blocked}};
  return {{"mode", mode}, {"ranks", {one, one}}};
}

// 20 ms for data; on two ranks 40 ms of exchange.
Json why_of(int ranks) {
  if (ranks == 1) return {{"samples", 8}, {"ranks", {rank(0.12, 0.02, 0.05)}}};
  return {{"ddp", true},
          {"samples", 8},
          {"cores", 4},
          {"workers", 0},
          {"recording", 0.0003},
          {"gradient_bytes", 1e6},
          {"ranks", {rank(0.16, 0.02, 0.09), rank(0.16, 0.02, 0.09)}},
          {"steps",
           {step_of("synced", 0.14, 0.09, 0.04), step_of("noop", 0.1, 0.05, 0),
            step_of("alone", 0.1, 0.05, 0)}}};
}

BenchRun run_of(size_t configuration, const Json& why) {
  BenchRun run{configuration, 0, {}, {}};
  run.samples.seconds = {0.1};
  run.samples.json = {{"parameters", {{"mode", configuration == 0 ? "single" : "ddp"}}}};
  if (!why.is_null()) run.samples.json["why"] = why;
  return run;
}

nlohmann::ordered_json why_of_runs(const std::vector<BenchRun>& runs) {
  const Plan plan = plan_of_script();
  Results results;
  results.runs = runs;
  Summary summary;
  summary.measurements = measurements(plan, results);
  return why_json(plan, results, summary);
}

nlohmann::ordered_json whole_why() {
  return why_of_runs({run_of(0, why_of(1)), run_of(1, why_of(2))});
}

TEST(WhyJson, HasThePartsOfEveryCount) {
  const Json why = whole_why();
  EXPECT_EQ(why["recording"], 0.0003);
  ASSERT_EQ(why["counts"].size(), 2);
  const Json &one = why["counts"][0], &two = why["counts"][1];
  EXPECT_EQ(one["devices"], 1);
  EXPECT_EQ(two["devices"], 2);
  EXPECT_EQ(two["mode"], "ddp");
  EXPECT_EQ(two["cause"], "exchange");
  EXPECT_EQ(one["cause"], "data");
  EXPECT_TRUE(two["refused"].is_null());
  EXPECT_NEAR(two["lost_s"].get<double>(), 0.06, 1e-9);
  double sum = 0;
  for (const Json& part : two["parts"]) sum += part["seconds"].get<double>();
  EXPECT_NEAR(sum, 0.06, 1e-9);
  EXPECT_EQ(two["parts"][1]["part"], "data");
  EXPECT_NEAR(two["parts"][1]["seconds_on_one"].get<double>(), 0.02, 1e-9);
  EXPECT_EQ(two["exchange"]["bytes"], 1e6);
  ASSERT_EQ(two["help"].size(), 2);
  EXPECT_NEAR(two["help"][0]["gain_s"].get<double>(), 0.02, 1e-9);
  EXPECT_EQ(two["help"][0]["evidence"], "replayed");
}

TEST(WhyJson, IsNullWithoutEvidence) {
  EXPECT_TRUE(why_of_runs({run_of(0, nullptr), run_of(1, nullptr)}).is_null());
  EXPECT_TRUE(why_of_runs({}).is_null());
}

TEST(WhyJson, RefusesACountWithoutEvidence) {
  const Json why = why_of_runs({run_of(0, nullptr), run_of(1, why_of(2))});
  ASSERT_EQ(why["counts"].size(), 2);
  for (const Json& count : why["counts"]) {
    EXPECT_TRUE(count["refused"].is_string());
    EXPECT_TRUE(count["cause"].is_null());
    EXPECT_TRUE(count["help"].empty());
  }
}

TEST(WhyJson, NamesNoCauseIfTheEvidenceIsInvalid) {
  Json bad = why_of(2);
  bad["ranks"][0]["data_s"] = -1;
  const Json why = why_of_runs({run_of(0, why_of(1)), run_of(1, bad)});
  EXPECT_TRUE(why["counts"].empty());
  EXPECT_THAT(why["because"].get<std::string>(), HasSubstr("ranks[0].data_s"));
}

TEST(WhyText, HasTheLargestCountOrAll) {
  const Json why = whole_why();
  const std::string brief = why_text(why, false, false), whole = why_text(why, true, false);
  EXPECT_THAT(brief, HasSubstr("160 ms"));
  EXPECT_THAT(brief, Not(HasSubstr("120 ms")));
  EXPECT_THAT(whole, HasSubstr("120 ms"));
  EXPECT_THAT(brief, HasSubstr("num_workers="));
  EXPECT_THAT(brief, HasSubstr("0.03 %"));
  EXPECT_EQ(why_text(nullptr, false, false), "");
}

TEST(WhyText, SaysFirstThatNoCauseIsNamed) {
  const std::string text =
      why_text(why_of_runs({run_of(0, nullptr), run_of(1, why_of(2))}), false, false);
  EXPECT_TRUE(text.starts_with("Why: No cause is named")) << text;
}

TEST(WhyText, PrintsUntrustedTextWithoutControls) {
  Json why = whole_why();
  why["counts"][1]["because"] = "\033[31mred";
  why["counts"][1]["help"][0]["paste"] = "rm\n::error::x";
  const std::string text = why_text(why, true, false);
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  EXPECT_THAT(text, Not(HasSubstr("\n::error")));
  why["counts"][1].erase("help");
  EXPECT_THROW(why_text(why, true, false), InputError);
}

Plan plan_of_model() {
  Plan plan;
  plan.request.workloads = {{"mlp", 16}};
  plan.request.modes = {"ddp"};
  plan.request.backends = {"gloo"};
  plan.request.devices = {"cpu:0", "cpu:1"};
  plan.request.counts = {1, 2};
  return plan;
}

BenchRun model_run(size_t configuration, int round, double step,
                   const std::map<std::string, double>& counters) {
  BenchRun run{configuration, round, {}, {}};
  run.samples.seconds = {step, step, step};
  run.row.counters = counters;
  return run;
}

TEST(WhyOfModels, DividesTheMetrics) {
  const Plan plan = plan_of_model();
  const std::vector<Configuration> all = configurations(plan.request);
  Results results;
  for (int round = 0; round < 3; ++round)
    for (size_t i = 0; i < all.size(); ++i) {
      const bool single = all[i].mode == "single", one = all[i].devices == 1;
      results.runs.push_back(model_run(i, round,
                                       single ? 0.1
                                       : one  ? 0.11
                                              : 0.2,
                                       {{metric::kDataWaitFraction, single || one ? 0 : 0.05},
                                        {metric::kExposedCommunicationS, one ? 0 : 0.05},
                                        {metric::kStragglerExtraS, one ? 0 : 0.02},
                                        {metric::kStragglerRank, 1}}));
    }
  const std::vector<CountParts> rows = parts_of_models(plan, results);
  ASSERT_EQ(rows.size(), all.size());
  const CountParts& two = rows.back();
  EXPECT_EQ(two.devices, 2);
  EXPECT_NEAR(two.lost(), 0.1, 1e-9);
  EXPECT_NEAR(two.of(LossPart::kData).seconds, 0.01, 1e-9);
  EXPECT_NEAR(two.of(LossPart::kExchange).seconds, 0.03, 1e-9);
  EXPECT_NEAR(two.of(LossPart::kSlowest).seconds, 0.02, 1e-9);
  EXPECT_NEAR(two.of(LossPart::kMachinery).seconds, 0.01, 1e-9);
  EXPECT_NEAR(two.of(LossPart::kCompute).seconds, 0.03, 1e-9);
  EXPECT_NEAR(two.of(LossPart::kRest).seconds, 0, 1e-9);
  EXPECT_TRUE(two.remainder);
  EXPECT_EQ(two.slowest.rank, 1);
  EXPECT_EQ(two.refused, "");
  const Json why = why_json(plan, results, {});
  EXPECT_EQ(why["counts"].size(), all.size());
  EXPECT_TRUE(why["recording"].is_null());
}

}  // namespace
}  // namespace howmany::reports
