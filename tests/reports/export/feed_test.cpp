// SPDX-License-Identifier: Apache-2.0
#include "reports/export/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/export/exporter.h"
#include "reports/gpus/command.h"
#include "tests/reports/folder.h"

namespace howmany::reports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

Measurement exported_step(const std::string& model, int devices, const std::string& mode,
                          double seconds, double efficiency) {
  Measurement m{
      .suite = "speedup", .name = mode + "/" + model, .parameters = {}, .metrics = {}, .flags = {}};
  m.parameters = {{"model", model},          {"mode", mode},
                  {"backend", "nccl"},       {"devices", std::to_string(devices)},
                  {"device_list", "cuda:0"}, {"scaling", "weak"},
                  {"batch_per_device", "32"}};
  const auto add = [&](const char* name, const char* unit, double value, double half) {
    m.metrics[name] = {value, unit, value - half, value + half, 3, "rounds"};
  };
  add("median_s", "s", seconds, seconds / 50);
  add("samples_per_s", "1/s", 32 * devices / seconds, 1);
  add("speedup", "ratio", efficiency * devices, 0.02 * devices);
  add("efficiency", "ratio", efficiency, 0.02);
  return m;
}

// One and two GPUs, and four on which ranks were oversubscribed.
Summary exported_run(const std::string& model = "mlp") {
  Summary summary;
  summary.measurements = {exported_step(model, 1, "single", 0.09, 1),
                          exported_step(model, 2, "ddp", 0.1, 0.9),
                          exported_step(model, 4, "ddp", 0.1, 0.9)};
  summary.measurements[2].flags = {"oversubscribed"};
  summary.context = {{"howmany_version", "1.2.3"},
                     {"howmany_date", "2025-12-01T00:00:00Z"},
                     {"commit", "abc"},
                     {"howmany_machine", {{"gpus", {"NVIDIA H100", "NVIDIA H100"}}}}};
  summary.answer["gpus"] = gpus_answer(summary.measurements, {});
  return summary;
}

nlohmann::json exported_beyond() {
  return nlohmann::json::parse(R"({
    "what": "mlp", "cluster": "a100x8", "recommended": 16,
    "measured": [{"devices": 1, "samples_per_s": 355, "efficiency": 1}],
    "rehearsed": [{"devices": 8, "samples_per_s": 2400, "low": 2300, "high": 2500,
                   "efficiency": 0.85, "efficiency_low": 0.8, "efficiency_high": 0.9}],
    "predicted": [{"devices": 16, "samples_per_s": 4000, "low": 3500, "high": 4500,
                   "efficiency": 0.7, "efficiency_low": 0.6, "efficiency_high": 0.8},
                  {"devices": 32, "refused": "too far"}]})");
}

TEST(Feed, HasTheRowsOfTheAnswerWithTheirIntervals) {
  const std::vector<Feed> feeds = feeds_of(exported_run());
  ASSERT_EQ(feeds.size(), 1U);
  ASSERT_EQ(feeds[0].rows.size(), 3U);
  const FeedRow& two = feeds[0].rows[1];
  EXPECT_STREQ(two.evidence, "measured");
  EXPECT_EQ(two.devices, 2);
  EXPECT_EQ(two.mode, "ddp");
  EXPECT_TRUE(two.best);
  const FeedValue& efficiency = two.values.at(&kFeedMetrics[4]);
  EXPECT_DOUBLE_EQ(efficiency.value, 0.9);
  EXPECT_DOUBLE_EQ(efficiency.low.value(), 0.88);
  EXPECT_DOUBLE_EQ(efficiency.high.value(), 0.92);
  EXPECT_DOUBLE_EQ(two.values.at(&kFeedMetrics[0]).value, 0.1);
  EXPECT_FALSE(feeds[0].rows[2].valid) << "oversubscribed";
}

TEST(Feed, HasParametersTagsAndTheAnswer) {
  const Feed feed = feeds_of(exported_run())[0];
  EXPECT_THAT(feed.params, IsSupersetOf({Pair("model", "mlp"), Pair("device_counts", "1,2,4"),
                                         Pair("scaling", "weak"), Pair("batch_per_device", "32"),
                                         Pair("device", "NVIDIA H100")}));
  EXPECT_THAT(feed.tags, IsSupersetOf({Pair("evidence", "measured"), Pair("version", "1.2.3"),
                                       Pair("commit", "abc"), Pair("reason", "pays")}));
  ASSERT_EQ(feed.answers.size(), 1U);
  EXPECT_EQ(feed.answers[0].devices, 2);
  EXPECT_EQ(feed.unix_seconds, 1'764'547'200);
}

TEST(Feed, KeepsPredictedRowsApart) {
  Summary summary = exported_run();
  summary.answer["beyond"] = exported_beyond();
  const Feed feed = feeds_of(summary)[0];
  ASSERT_EQ(feed.rows.size(), 5U);
  EXPECT_STREQ(feed.rows[3].evidence, "rehearsed");
  EXPECT_STREQ(feed.rows[4].evidence, "predicted");
  EXPECT_DOUBLE_EQ(feed.rows[4].values.at(&kFeedMetrics[4]).low.value(), 0.6);
  EXPECT_EQ(feed.params.at("cluster"), "a100x8");
  ASSERT_EQ(feed.answers.size(), 2U);
  EXPECT_STREQ(feed.answers[1].evidence, "predicted");
  EXPECT_EQ(feed.answers[1].devices, 16);
}

TEST(Feed, LeavesOutWhatASummaryKnowsOfTheMachineAndTheCommand) {
  Summary summary = exported_run();
  for (const char* key : {"executable", "host_name", "script_environment", "howmany_request"})
    summary.context[key] = "secret";
  summary.measurements[0].parameters["python"] = "secret";
  summary.measurements[0].flags = {"failed on several nodes: secret"};
  summary.answer["gpus"] = gpus_answer(summary.measurements, {});
  const std::vector<Feed> feeds = feeds_of(summary);
  EXPECT_THAT(openmetrics_text(feeds), Not(HasSubstr("secret")));
  for (const auto* texts : {&feeds[0].params, &feeds[0].tags})
    for (const auto& [key, value] : *texts) EXPECT_THAT(value, Not(HasSubstr("secret"))) << key;
}

TEST(Feed, ThrowsIfNoRowCounts) {
  EXPECT_THROW(feeds_of({}), InputError);
  Summary summary = exported_run();
  for (Measurement& m : summary.measurements) m.flags = {"failed: it crashed"};
  summary.answer["gpus"] = gpus_answer(summary.measurements, {});
  EXPECT_THROW(feeds_of(summary), InputError);
  summary.answer["beyond"] = {{"refused", "too little was measured"}};
  EXPECT_THROW(feeds_of(summary), InputError);
}

TEST(Feed, SurvivesAnswersOfAnyShape) {
  Summary summary = exported_run();
  for (const char* text : {"null", "7", "[]", "[{}]", "\"x\"", "[[1]]", R"([{"devices":1e300}])",
                           R"([{"devices":-4,"efficiency":"x","mode":{}}])"}) {
    const auto odd = nlohmann::json::parse(text);
    summary.answer["beyond"] = {{"what", odd},
                                {"predicted", odd},
                                {"rehearsed", odd},
                                {"recommended", odd},
                                {"cluster", odd}};
    EXPECT_EQ(feeds_of(summary).size(), 1U) << text;
    summary.answer["gpus"]["cases"][0]["notes"] = odd;
    summary.context["howmany_date"] = summary.context["howmany_machine"] = odd;
    EXPECT_EQ(feeds_of(summary)[0].unix_seconds, std::nullopt) << text;
    Summary other = summary;
    other.answer["gpus"]["cases"][0]["table"] = odd;
    other.answer.erase("beyond");
    EXPECT_THROW(feeds_of(other), InputError) << text;
  }
}

TEST(OpenMetrics, HasOneFamilyPerMetricWithUnitAndIntervals) {
  const std::string text = openmetrics_text(feeds_of(exported_run()));
  EXPECT_THAT(text, StartsWith("# HELP howmany_answer "));
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr("# TYPE howmany_step_time_seconds gauge\n"
                    "# UNIT howmany_step_time_seconds seconds\n"),
          HasSubstr("howmany_step_time_seconds{model=\"mlp\",evidence=\"measured\",mode=\"ddp\","
                    "backend=\"nccl\",devices=\"2\",nodes=\"1\"} 0.1\n"),
          HasSubstr("howmany_efficiency_low_ratio{model=\"mlp\",evidence=\"measured\",mode=\"ddp\","
                    "backend=\"nccl\",devices=\"2\",nodes=\"1\"} 0.88\n"),
          HasSubstr("howmany_recommended_devices{model=\"mlp\",evidence=\"measured\"} 2\n"),
          HasSubstr("howmany_answer_timestamp_seconds{model=\"mlp\"} 1764547200\n")));
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST(OpenMetrics, EscapesNamesAndKeepsEachOnItsLine) {
  Summary summary = exported_run("a\"} 1\nhowmany_evil{x=\"\\\r");
  const std::string text = openmetrics_text(feeds_of(summary));
  EXPECT_THAT(text, Not(HasSubstr("\nhowmany_evil")));
  EXPECT_THAT(text, HasSubstr("model=\"a\\\"} 1?howmany_evil{x=\\\"\\\\?\""));
}

TEST(OpenMetrics, ShortensLongNamesAndOmitsRepeatedSamples) {
  std::vector<Feed> feeds = feeds_of(exported_run(std::string(100'000, 'x')));
  const std::string once = openmetrics_text(feeds);
  EXPECT_LT(once.size(), 50'000U);
  feeds.push_back(feeds[0]);
  EXPECT_EQ(openmetrics_text(feeds), once);
}

TEST(OpenMetrics, OmitsFamiliesWithoutASample) {
  std::vector<Feed> feeds = feeds_of(exported_run());
  feeds[0].unix_seconds = {};
  EXPECT_THAT(openmetrics_text(feeds),
              AllOf(Not(HasSubstr("timestamp")), Not(HasSubstr("batches_per_second"))));
}

TEST(Exports, ReplacesTheFileAsAWhole) {
  const TemporaryFolder folder;
  const std::vector<Feed> feeds = feeds_of(exported_run());
  export_openmetrics(feeds, {folder / "howmany.prom", ""});
  export_openmetrics(feeds, {folder / "howmany.prom", ""});
  EXPECT_EQ(contents(folder / "howmany.prom"), openmetrics_text(feeds));
  EXPECT_THROW(export_openmetrics(feeds, {folder / "none/x.prom", ""}), InputError);
}

TEST(Exports, AreParsed) {
  EXPECT_STREQ(parse_export("mlflow:a:b").exporter->name, "mlflow");
  EXPECT_EQ(parse_export("mlflow:a:b").path, "a:b");
  for (const char* text : {"", "mlflow", "mlflow:", ":x", "mlfow:x", "http://host/x"})
    EXPECT_THROW(parse_export(text), InputError) << text;
}

}  // namespace
}  // namespace howmany::reports
