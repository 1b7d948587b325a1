// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "reports/comm/advise.h"
#include "reports/comm/command.h"
#include "reports/comm/json.h"
#include "reports/comm/render.h"
#include "reports/comm/run.h"
#include "tests/reports/comm/examples.h"
#include "tests/reports/examples.h"

namespace howmany::reports {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string rendered(const std::vector<Measurement>& all) {
  return render_backend(advise_backend(all), all, false);
}

std::string with_calls(double calls, const std::string& basis = "rounds") {
  Measurement m = cell("all_reduce", "gloo", 4, 1e-6);
  m.metrics["median_s"].basis = basis;
  m.metrics["median_s"].n = basis == "rounds" ? 5 : static_cast<int64_t>(calls);
  m.metrics["p95_s"] = {1.2e-6, "s", {}, {}, 0, ""};
  m.metrics["p99_s"] = {1.5e-6, "s", {}, {}, 0, ""};
  if (basis == "rounds") m.metrics["calls"] = {calls, "", {}, {}, 5, "rounds"};
  return rendered({m});
}

TEST(BackendRender, TellsTailsOnlyOfEnoughCalls) {
  for (const char* basis : {"rounds", "iterations"}) {
    EXPECT_THAT(with_calls(15, basis), Not(HasSubstr("p95")));
    EXPECT_THAT(with_calls(20, basis), AllOf(HasSubstr("gloo p95 1.20x"), Not(HasSubstr("p99"))));
    EXPECT_THAT(with_calls(100, basis), HasSubstr("gloo p95 1.20x, p99 1.50x"));
  }
}

TEST(BackendRender, TellsNoTailsOfRoundsThatDoNotSayHowManyCalls) {
  Measurement m = cell("all_reduce", "gloo", 4, 1e-6);
  m.metrics["median_s"].basis = "rounds";
  m.metrics["p95_s"] = {1.2e-6, "s", {}, {}, 5, "rounds"};
  EXPECT_THAT(rendered({m}), Not(HasSubstr("p95")));
}

TEST(Measurements, SayHowManyCallsTheyStandOn) {
  BenchRow row;
  row.name = "backend/all_reduce/gloo/dtype:f32/devices:2/bytes:4";
  row.counters = {{"median_s", 1e-3}, {"samples", 12}};
  SuiteRun run;
  run.file.rows = {row};
  EXPECT_DOUBLE_EQ(value_of(measurements_of(run).at(0), "calls"), 12);
}

TEST(BackendRender, CountsSkippedCellsByReason) {
  const Measurement m = cell("all_reduce", "gloo", 4, 1e-6);
  std::vector<Measurement> all = {m, skipped(m, "no memory"), skipped(m, "no time"),
                                  skipped(m, "no time")};
  EXPECT_THAT(rendered(all), HasSubstr("Skipped: 3 cells: 2 as no time; 1 as no memory.\n"));
  for (const char* why : {"a", "b"}) all.push_back(skipped(m, why));
  EXPECT_THAT(rendered(all), HasSubstr("Skipped: 5 cells, for reasons such as: no time (2).\n"));
  EXPECT_THAT(rendered({m, all[1]}), HasSubstr("Skipped: 1 cell, as no memory.\n"));
}

TEST(BackendRender, TellsNoBandwidthOfTimesThatDoNotGrow) {
  std::vector<Measurement> all;
  for (const double bytes : {4, 8, 16, 32}) all.push_back(cell("all_reduce", "gloo", bytes, 7e-3));
  EXPECT_THAT(rendered(all),
              AllOf(HasSubstr("gloo: 7.00 ms, and no size measured is so large that"),
                    Not(HasSubstr("bytes / "))));
  const auto fits = to_json(advise_backend(all), all)["fits"];
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_TRUE(fits[0]["bytes_per_s"].is_null());
}

TEST(BackendRender, HoldsNoCommandsForATerminal) {
  std::vector<Measurement> all;
  for (const double bytes : {4, 1024, 65536, 262144})
    all.push_back(cell("all_\033[31mreduce", "gl\033[2Joo", bytes, 1e-6 * bytes));
  for (Measurement& m : all) {
    m.metrics["p95_s"] = {2 * m.metrics["median_s"].value, "s", {}, {}, 20, "iterations"};
    m.parameters["dtype"] = "\033f32";
  }
  all.push_back(skipped(cell("all_reduce", "gloo", 4, 1), "\033]0;title"));
  const std::string text = rendered(all);
  EXPECT_EQ(text.find('\033'), std::string::npos) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("gl?[2Joo: "), HasSubstr("gl?[2Joo p95"),
                          HasSubstr("as ?]0;title"), HasSubstr("all_?[31mreduce, ?f32")));
}

TEST(BackendRender, StaysShortWhateverTheNumbers) {
  std::vector<Measurement> all = two_backends();
  for (Measurement& m : all) {
    m.metrics["median_s"].value = 1e300;
    m.parameters["devices"] = "1e300";
    m.metrics["p95_s"] = {1e-300, "s", {}, {}, 20, "iterations"};
  }
  EXPECT_LE(most_digits(rendered(all)), 15) << rendered(all);
}

TEST(BackendRender, LeavesOutWhatAFileDoesNotTell) {
  std::vector<Measurement> all = two_backends();
  all[0].metrics["median_s"].value = 0;
  Measurement pace{"backend", "pace", {{"devices", "2"}}, {}, {}};
  pace.metrics["slowest_rank"] = {std::nan(""), "", {}, {}, 3, "rounds"};
  pace.metrics["of_others"] = {std::nan(""), "ratio", {}, {}, 3, "rounds"};
  all.push_back(pace);
  EXPECT_THAT(rendered(all), Not(HasSubstr("nan")));
}

TEST(BackendAdvice, HoldsNcclAgainstNoRoadOfTheHost) {
  std::vector<Measurement> all = {cell("all_reduce", "nccl", 64 * kMiB, 1e-3),
                                  cell("all_reduce", "local", 64 * kMiB, 1e-2)};
  Measurement copy{"transfer", "copy", {{"bytes", "67108864"}, {"threads", "2"}}, {}, {}};
  copy.metrics["bytes_per_s"] = {8e9, "bytes/s", {}, {}, 5, "iterations"};
  all.push_back(copy);
  const BackendAdvice advice = advise_backend(all);
  ASSERT_EQ(advice.verdicts.size(), 1u);
  EXPECT_EQ(advice.verdicts[0].backend, "local");
}

}  // namespace
}  // namespace howmany::reports
