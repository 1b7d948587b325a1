// SPDX-License-Identifier: Apache-2.0
// Tests the demand of training from an earlier run.
#include "reports/workers/demand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/base/text/files.h"
#include "core/base/text/json.h"
#include "reports/results/record.h"
#include "reports/workers/bench.h"
#include "tests/reports/examples.h"
#include "tests/reports/folder.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

std::string write_summary(const TemporaryFolder& folder, const Summary& summary) {
  const std::string path = folder.path() + "/summary.json";
  write_text(path, dump_json(to_json(summary)));
  return path;
}

TEST(WorkersDemand, IsThatOfOneDeviceAtTheNumberAskedFor) {
  const TemporaryFolder folder;
  const std::string path = write_summary(folder, example_curve());  // 640 samples/s per device
  EXPECT_NEAR(demand_from_file(path, 2).samples_per_s, 640, 1e-6);
  EXPECT_THAT(demand_from_file(folder.path(), 4).from, HasSubstr("ddp/mlp on 4 in"));
  EXPECT_THAT(demand_from_file(path, 3).from, HasSubstr("on 2 in"));  // the nearest smaller number
}

TEST(WorkersDemand, WaitingForDataThenDoesNotHideIt) {
  const TemporaryFolder folder;
  Summary summary = example_curve();
  for (Measurement& m : summary.measurements)
    m.metrics["data_wait_fraction"] = {0.5, "ratio", {}, {}, 1, ""};
  EXPECT_NEAR(demand_from_file(write_summary(folder, summary), 2).samples_per_s, 1280, 1e-6);
}

TEST(WorkersDemand, ABenchFileTellsItToo) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/speedup.json";
  write_text(path, R"({"context": {}, "benchmarks": [{"name": "speedup/ddp/mlp/devices:2/batch:8",
    "run_type": "iteration", "real_time": 1, "time_unit": "ms", "samples_per_s": 100}]})");
  EXPECT_NEAR(demand_from_file(path, 2).samples_per_s, 50, 1e-9);
  EXPECT_NEAR(demand_from_file(folder.path(), 8).samples_per_s, 50, 1e-9);
  EXPECT_THROW(demand_from_file(path, 1), InputError);
}

TEST(WorkersDemand, FilesThatTellNothingAreRefused) {
  const TemporaryFolder folder;
  EXPECT_THROW(demand_from_file(folder.path(), 1), InputError);
  EXPECT_THROW(demand_from_file(folder.path() + "/none.json", 1), InputError);
  const std::string path = folder.path() + "/x.json";
  for (const char* text : {"", "{", "[]", "null", R"({"schema": "other"})", R"({"benchmarks": []})",
                           R"({"context": {}, "benchmarks": [3]})"}) {
    write_text(path, text);
    EXPECT_THROW(demand_from_file(path, 1), InputError) << text;
  }
}

TEST(WorkersArguments, WorkersAreAutoOrAList) {
  EXPECT_TRUE(workers_from("auto").empty());
  EXPECT_EQ(workers_from("0,1,16"), (std::vector<int>{0, 1, 16}));
  for (const char* text : {"", "-1", "1,", ",1", "two", "10000", "1 2", "99999999999999999999"})
    EXPECT_THROW(workers_from(text), InputError) << text;
}

TEST(LoaderMeasurement, TheNameTellsCaseAndParameters) {
  BenchRow row;
  row.name = "loader/cost:200/workers:2/batch:64/prefetch:2/as:threads";
  row.counters = {{"samples_per_s", 640}, {"stall_fraction", 0.2}, {"first_batch_s", 0.1}};
  const Measurement m = measurement_of(row);
  EXPECT_EQ(m.suite, "loader");
  EXPECT_EQ(m.name, "cost:200");
  EXPECT_EQ(m.parameters.at("workers"), "2");
  EXPECT_EQ(m.parameters.at("as"), "threads");
  EXPECT_EQ(m.metrics.at("samples_per_s").value, 640);
  EXPECT_EQ(m.metrics.at("first_batch_s").unit, "s");
}

TEST(LoaderMeasurement, OddNamesAreNoCrash) {
  for (const char* name :
       {"", "/", "loader", "loader/", "loader//", ":", "loader/:/:", "a/b:/c:"}) {
    BenchRow row;
    row.name = name;
    row.error = "why";
    EXPECT_EQ(measurement_of(row).flags, std::vector<std::string>{"failed: why"});
  }
}

}  // namespace
}  // namespace howmany::reports
