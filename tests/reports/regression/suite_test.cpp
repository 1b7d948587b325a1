// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/suite.h"

#include <gmock/gmock.h>

#include "reports/results/record.h"
#include "tests/reports/examples.h"
#include "tests/reports/folder.h"

namespace howmany::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<double> values(const Benchmark& benchmark, const std::string& metric) {
  std::vector<double> all;
  for (const Sample& sample : benchmark.metrics.at(metric)) all.push_back(sample.value);
  return all;
}

Suite rows(const std::string& text) {
  return suite_from_text(R"({"context": {}, "benchmarks": [)" + text + "]}", "f");
}

std::string suite_refusal(const std::string& text) {
  try {
    suite_from_text(text, "f");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Suite, ReadsGoogleBenchmarkJson) {
  const Suite suite = suite_from_text(kBenchText, "b.json");
  ASSERT_EQ(suite.benchmarks.size(), 2u);
  const Benchmark& two = suite.benchmarks[0];
  EXPECT_EQ(two.name, "speedup/ddp/mlp/devices:2");
  EXPECT_THAT(values(two, "real_time"), ElementsAre(0.0025, 0.0025));  // in ms and us
  EXPECT_EQ(values(two, "cpu_time").size(), 1u);                       // the other is -Infinity
  EXPECT_THAT(values(two, "samples_per_s"), ElementsAre(100.5));
  EXPECT_FALSE(two.metrics.contains("cv"));  // NaN
  EXPECT_TRUE(two.aggregates.empty());       // samples exist
  EXPECT_EQ(suite.benchmarks[1].error, "peer gone");
  EXPECT_EQ(suite.context["num_cpus"], 2);
}

TEST(Suite, KeepsTheContextAsATree) {
  const Suite suite = suite_from_text(
      R"({"context": {"caches": [{"size": 1, "type": "Data"}, {"size": 2}], "a": {"b": [true, null]}, "c": "x"},
          "benchmarks": []})",
      "f");
  EXPECT_EQ(
      suite.context,
      nlohmann::json::parse(
          R"({"caches": [{"size": 1, "type": "Data"}, {"size": 2}], "a": {"b": [true, null]}, "c": "x"})"));
}

TEST(Suite, TakesTheMedianThenTheMeanOfAggregatesOnly) {
  const Suite suite = rows(R"(
    {"name": "a_mean", "run_name": "a", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 5, "time_unit": "us"},
    {"name": "a_median", "run_name": "a", "run_type": "aggregate", "aggregate_name": "median", "real_time": 4, "time_unit": "us"},
    {"name": "a_cv", "run_name": "a", "run_type": "aggregate", "aggregate_name": "cv", "aggregate_unit": "percentage", "real_time": 0.1},
    {"name": "a_BigO", "run_name": "a", "run_type": "aggregate", "aggregate_name": "BigO", "big_o": "N"},
    {"name": "b_mean", "run_name": "b", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 2, "time_unit": "s"})");
  ASSERT_EQ(suite.benchmarks.size(), 2u);
  EXPECT_TRUE(suite.benchmarks[0].metrics.empty());
  EXPECT_DOUBLE_EQ(suite.benchmarks[0].aggregates.at("real_time"), 4e-6);
  EXPECT_DOUBLE_EQ(suite.benchmarks[1].aggregates.at("real_time"), 2);
}

TEST(Suite, ReadsFilesWithoutRunTypes) {
  const Suite suite = rows(R"(
    {"name": "a", "iterations": 10, "real_time": 1, "time_unit": "ns"},
    {"name": "a", "iterations": 10, "real_time": 3, "time_unit": "ns"},
    {"name": "a_mean", "real_time": 2}, {"name": "a_stddev", "real_time": 1})");
  ASSERT_EQ(suite.benchmarks.size(), 1u);
  EXPECT_EQ(values(suite.benchmarks[0], "real_time").size(), 2u);
}

TEST(Suite, SeparatesBenchmarksOfOneName) {
  const Suite suite = rows(R"(
    {"name": "a", "family_index": 0, "per_family_instance_index": 0, "repetition_index": 0, "real_time": 1},
    {"name": "a", "family_index": 1, "per_family_instance_index": 0, "repetition_index": 0, "real_time": 9},
    {"name": "a", "family_index": 0, "per_family_instance_index": 0, "repetition_index": 1, "real_time": 2},
    {"name": "a", "family_index": 1, "per_family_instance_index": 0, "repetition_index": 1, "real_time": 8})");
  ASSERT_EQ(suite.benchmarks.size(), 2u);
  EXPECT_THAT(values(suite.benchmarks[0], "real_time"), ElementsAre(1e-9, 2e-9));
  EXPECT_EQ(suite.benchmarks[1].name, "a #2");
  EXPECT_THAT(suite.notes.at(0), HasSubstr("share their name"));
}

TEST(Suite, NotesRepeatedRepetitions) {
  const Suite suite = rows(R"({"name": "a", "repetition_index": 0, "real_time": 1},
                              {"name": "a", "repetition_index": 0, "real_time": 2})");
  EXPECT_THAT(values(suite.benchmarks[0], "real_time"), ElementsAre(1e-9, 2e-9));
  EXPECT_THAT(suite.notes.at(0), HasSubstr("repeat a name and repetition"));
}

TEST(Suite, PutsInterleavedRepetitionsInOrder) {
  const Suite suite = rows(R"({"name": "a", "repetition_index": 1, "real_time": 2},
                              {"name": "a", "repetition_index": 0, "real_time": 1})");
  EXPECT_THAT(values(suite.benchmarks[0], "real_time"), ElementsAre(1e-9, 2e-9));
  EXPECT_TRUE(suite.notes.empty());
}

TEST(Suite, ReportsABadTimeForItsBenchmarkAlone) {
  const Suite suite = rows(R"({"name": "back", "real_time": -3}, {"name": "none", "real_time": NaN},
      {"name": "zero", "real_time": 0}, {"name": "absent"}, {"name": "text", "real_time": "1"},
      {"name": "good", "real_time": 1}, {"name": "gone", "skipped": true, "skip_message": "no GPU"},
      {"name": "gone too", "error_occurred": true})");
  ASSERT_EQ(suite.benchmarks.size(), 8u);
  EXPECT_THAT(suite.benchmarks[0].error, HasSubstr("clock went backwards"));
  EXPECT_THAT(suite.benchmarks[1].error, HasSubstr("not finite"));
  EXPECT_THAT(suite.benchmarks[2].error, HasSubstr("nothing was timed"));
  EXPECT_THAT(suite.benchmarks[3].error, HasSubstr("missing"));
  EXPECT_THAT(suite.benchmarks[4].error, HasSubstr("missing"));
  EXPECT_EQ(suite.benchmarks[5].error, "");
  EXPECT_EQ(suite.benchmarks[6].skipped, "no GPU");
  EXPECT_EQ(suite.benchmarks[7].error, "error without a message");
}

TEST(Suite, RefusesOtherFiles) {
  EXPECT_THAT(suite_refusal(""), HasSubstr("[f] is empty"));
  EXPECT_THAT(suite_refusal("{\"benchmarks\": [{\"name\": \"a\", \"real_t"), HasSubstr("not JSON"));
  EXPECT_THAT(suite_refusal("{}"), HasSubstr("\"benchmarks\" is missing"));
  EXPECT_THAT(suite_refusal("[{\"benchmarks\": []}]"), HasSubstr("\"benchmarks\" is missing"));
  EXPECT_THAT(suite_refusal("{\"benchmarks\": {}}"), HasSubstr("\"benchmarks\" is missing"));
  EXPECT_THAT(suite_refusal("{\"benchmarks\": [{\"real_time\": 1}]}"),
              HasSubstr("benchmarks[0]: \"name\" is missing"));
  EXPECT_THAT(suite_refusal(R"({"benchmarks": [{"name": "a", "real_time": 1, "time_unit": "h"}]})"),
              HasSubstr("unknown time_unit \"h\""));
  EXPECT_THAT(suite_refusal(R"({"benchmarks": [{"name": "a", "repetition_index": -1}]})"),
              HasSubstr("benchmarks[0].repetition_index"));
  EXPECT_THAT(suite_refusal(std::string(1000, '[')), HasSubstr("nested deeper"));
}

TEST(Suite, TakesTheMedianOfALaunch) {
  Suite suite = rows(R"({"name": "a", "real_time": 1, "time_unit": "s"})");
  take_samples(suite,
               "{\"name\": \"a\", \"seconds\": [1, 2, 9]}\n{\"name\": \"a\", \"seconds\": [3]}\n"
               "{\"name\": \"b\", \"seconds\": [3]}\n",
               "s");
  EXPECT_THAT(values(suite.benchmarks[0], "real_time"), ElementsAre(2, 3));
  EXPECT_TRUE(suite.launches);
  EXPECT_THAT(suite.notes.at(0), HasSubstr("1 names"));
}

TEST(Suite, ReadsEveryBenchmarkFileOfAFolder) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_suite(folder.path()), InputError);
  std::ofstream(folder / "summary.json") << "{}";
  std::ofstream(folder / "other.json") << "[1]";
  std::ofstream(folder / "a.json") << R"({"benchmarks": [{"name": "a", "real_time": 1}]})";
  std::ofstream(folder / "a.samples.jsonl") << "{\"name\": \"a\", \"seconds\": [4]}\n";
  std::ofstream(folder / "b.json") << R"({"benchmarks": [{"name": "b", "real_time": 1}]})";
  const Suite suite = read_suite(folder.path());
  ASSERT_EQ(suite.benchmarks.size(), 2u);
  EXPECT_THAT(values(suite.benchmarks[0], "real_time"), ElementsAre(4));
  EXPECT_THROW(read_suite(folder / "nowhere.json"), InputError);
}

}  // namespace
}  // namespace howmany::reports
