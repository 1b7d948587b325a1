// SPDX-License-Identifier: Apache-2.0
#include "reports/cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/comm/run.h"
#include "tests/reports/comm/examples.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Report, SaysAgainThatTheMachineWasNotIdle) {
  Summary summary;
  summary.answer = {{"backend", nlohmann::json::object()}};
  summary.measurements = two_backends();
  SuiteRun idle, busy;
  busy.busy_elsewhere = 0.5;
  add_busy_elsewhere({idle}, summary.context);
  EXPECT_THAT(suite_text(summary, false), Not(HasSubstr("not idle")));
  add_busy_elsewhere({idle, busy, idle}, summary.context);
  const char* note = "The machine was not idle: other programs used up to 50 %";
  EXPECT_THAT(suite_text(summary, false), HasSubstr(note));
  summary.answer = {{"transfer", nlohmann::json::object()}};
  EXPECT_THAT(suite_text(summary, false), HasSubstr(note));
  summary.context["busy_elsewhere_fraction"] = "much";
  EXPECT_THAT(suite_text(summary, false), Not(HasSubstr("not idle")));
}

}  // namespace
}  // namespace howmany::reports
