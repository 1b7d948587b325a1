// SPDX-License-Identifier: Apache-2.0
#include "reports/results/bench_file.h"

#include <gmock/gmock.h>

#include "core/base/text/json.h"
#include "reports/results/record.h"
#include "tests/reports/examples.h"
#include "tests/support/message_of.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

BenchFile read(const std::string& text) {
  return bench_from_json(parse_json(text, "b.json"), "b.json");
}

std::string bench_file_refusal(const std::string& text) {
  return message_of<InputError>([&] { read(text); });
}

std::string row(const std::string& members) { return R"({"benchmarks": [{)" + members + "}]}"; }

TEST(BenchFile, KeepsIterationsAndSkipsAggregates) {
  const BenchFile file = read(kBenchText);
  ASSERT_EQ(file.rows.size(), 3u);
  EXPECT_EQ(file.rows[0].name, file.rows[1].name);
  EXPECT_EQ(file.rows[1].repetition, 1);
  EXPECT_DOUBLE_EQ(file.rows[0].seconds, 0.0025);
  EXPECT_DOUBLE_EQ(file.rows[1].seconds, 0.0025);
  EXPECT_EQ(file.rows[2].error, "peer gone");
  EXPECT_EQ(file.context["num_cpus"], 2);
}

TEST(BenchFile, TakesNonFiniteTokensAsNullOutsideStringsOnly) {
  const BenchFile file = read(kBenchText);
  EXPECT_EQ(file.rows[0].counters.count("cv"), 0u);
  EXPECT_DOUBLE_EQ(file.rows[0].counters.at("samples_per_s"), 100.5);
  EXPECT_TRUE(file.rows[1].json["cpu_time"].is_null());
  EXPECT_EQ(file.rows[1].json["label"], "NaN \"Infinity\"");
}

TEST(BenchFile, CountersAreNotGoogleBenchmarksOwnFields) {
  const BenchRow first = read(kBenchText).rows[0];
  EXPECT_EQ(first.counters.size(), 1u);
}

TEST(BenchFile, RefusesNumbersThatCannotBeMeasurements) {
  EXPECT_THAT(bench_file_refusal(row(R"("name": "a", "real_time": -1)")), HasSubstr("negative"));
  EXPECT_THAT(bench_file_refusal(row(R"("name": "a", "real_time": NaN)")), HasSubstr("real_time"));
  EXPECT_THAT(bench_file_refusal(row(R"("name": "a", "real_time": 1e999)")), HasSubstr("[b.json]"));
  EXPECT_THAT(bench_file_refusal(row(R"("name": "a", "real_time": 1, "time_unit": "h")")),
              HasSubstr("\"h\""));
  EXPECT_THAT(bench_file_refusal(row(R"("name": "a", "real_time": 1, "repetition_index": -3)")),
              HasSubstr("repetition_index"));
}

TEST(BenchFile, NamesWhatIsMissing) {
  EXPECT_THAT(bench_file_refusal("{}"), HasSubstr("\"benchmarks\" is missing"));
  EXPECT_THAT(bench_file_refusal("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(bench_file_refusal(row(R"("real_time": 1)")),
              HasSubstr("benchmarks[0]: \"name\" is missing"));
  EXPECT_THAT(bench_file_refusal(row(R"("name": "a")")), HasSubstr("\"real_time\" is missing"));
  EXPECT_THAT(bench_file_refusal(R"({"benchmarks": 3})"),
              HasSubstr("benchmarks: expected an array"));
  EXPECT_THAT(bench_file_refusal(R"({"benchmarks": [{"name": NaN)"), HasSubstr("not JSON"));
}

TEST(Samples, ReadOneRunALine) {
  const auto lines = samples_from_text(
      "{\"name\": \"a\", \"seconds\": [1, 2.5], \"converged\": true, \"flags\": [\"f\"]}\n\n"
      "{\"name\": \"b\", \"seconds\": []}",
      "s");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0].seconds, ::testing::ElementsAre(1, 2.5));
  EXPECT_TRUE(lines[0].converged);
  EXPECT_FALSE(lines[1].converged);
}

TEST(Samples, TellTheLineOfWhatIsWrong) {
  const auto refused = [](const std::string& text) {
    return message_of<InputError>([&] { samples_from_text(text, "s"); });
  };
  EXPECT_THAT(refused("{\"name\": \"a\", \"seconds\": [1]}\n{\"name\": \"b\", \"sec"),
              HasSubstr("[s:2]"));
  EXPECT_THAT(refused("{\"name\": \"a\", \"seconds\": [0]}"), HasSubstr("seconds[0]"));
  EXPECT_THAT(refused("{\"name\": \"a\", \"seconds\": [NaN]}"), HasSubstr("expected a number"));
}

}  // namespace
}  // namespace howmany::reports
