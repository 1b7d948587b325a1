// SPDX-License-Identifier: Apache-2.0
// Tests the parser of Python's measurements.
#include "reports/workers/python.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

nlohmann::json probe(const nlohmann::json& torch) {
  return {{"version", "3.11.2"},
          {"torch", torch},
          {"method", "fork"},
          {"start_s", {{"fork", 0.02}, {"spawn", 2.5}}},
          {"batch_s", 3e-4}};
}

TEST(WorkersPython, StartsWorkersAsThatPythonDoesUnlessToldOtherwise) {
  const PythonCost plain = python_cost_from(probe(nullptr), "");
  EXPECT_EQ(plain.version, "3.11.2");
  EXPECT_DOUBLE_EQ(plain.worker_start_s(), 0.02);
  EXPECT_DOUBLE_EQ(python_cost_from(probe(nullptr), "spawn").worker_start_s(), 2.5);
  EXPECT_THROW(python_cost_from(probe(nullptr), "forkserver"), InputError);
}

TEST(WorkersPython, TorchIsPartOfTheVersion) {
  EXPECT_EQ(python_cost_from(probe("2.13.0"), "").version, "3.11.2 with torch 2.13.0");
}

TEST(WorkersPython, ASampleTakesWhatTheCheckScriptMeasuredWithWorkersAndWithout) {
  PythonCost cost = python_cost_from(probe("2.13.0"), "");
  add_sample_cost(cost, nlohmann::json::parse(R"({"how": "torchvision", "rows": [
      {"workers": 0, "samples_per_s": 500}, {"workers": 1, "samples_per_s": 400},
      {"workers": 4, "samples_per_s": 600}]})"),
                  1.5);
  EXPECT_DOUBLE_EQ(cost.alone_s, 2e-3);
  EXPECT_DOUBLE_EQ(cost.sample_s, 2.5e-3);
  EXPECT_EQ(cost.how, "torchvision");
  EXPECT_EQ(cost.oversubscribed, 4);
  EXPECT_DOUBLE_EQ(cost.oversubscribed_s, 2.5e-3) << "of one of one and a half cores";
}

TEST(WorkersPython, WhatIsNoPythonIsToldAndNotThrown) {
  const PythonCost none = measure_python("/nowhere/python3", "", "", ::testing::TempDir(), 2, 4);
  EXPECT_FALSE(none.measured());
  EXPECT_THAT(none.why_not, HasSubstr("/nowhere/python3"));
  EXPECT_FALSE(measure_python("no-such-python", "", "", ::testing::TempDir(), 2, 4).measured());
  const PythonCost silent = measure_python("/bin/true", "", "", ::testing::TempDir(), 2, 4);
  EXPECT_FALSE(silent.measured());
  EXPECT_THAT(silent.why_not, HasSubstr("/bin/true"));
}

TEST(WorkersPython, ForeignAnswersAreRefused) {
  EXPECT_THROW(python_cost_from({{"version", 3}}, ""), InputError);
  nlohmann::json odd = probe(nullptr);
  odd["start_s"] = {{"fork", "soon"}};
  EXPECT_THROW(python_cost_from(odd, ""), InputError);
}

}  // namespace
}  // namespace howmany::reports
