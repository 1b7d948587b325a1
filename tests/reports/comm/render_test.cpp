// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "reports/comm/advise.h"
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

TEST(Measurements, HaveTheirNumberOfCalls) {
  BenchRow row;
  row.name = "backend/all_reduce/gloo/dtype:f32/devices:2/bytes:4";
  row.counters = {{"median_s", 1e-3}, {"samples", 12}};
  SuiteRun run;
  run.file.rows = {row};
  EXPECT_DOUBLE_EQ(value_of(measurements_of(run).at(0), "calls"), 12);
}

TEST(BackendRender, CountsSkippedCells) {
  const Measurement m = cell("all_reduce", "gloo", 4, 1e-6);
  const std::vector<Measurement> all = {m, skipped(m, "no time"), skipped(m, "no memory")};
  EXPECT_THAT(rendered(all), HasSubstr("Skipped: 2 cells (no time, ...).\n"));
  EXPECT_THAT(rendered({m, all[1]}), HasSubstr("Skipped: 1 cell (no time).\n"));
}

TEST(BackendRender, ShowsNoBandwidthIfTimesDoNotGrow) {
  std::vector<Measurement> all;
  for (const double bytes : {4, 8, 16, 32}) all.push_back(cell("all_reduce", "gloo", bytes, 7e-3));
  EXPECT_THAT(rendered(all),
              AllOf(HasSubstr("gloo: 7.00 ms, and no size measured is so large that"),
                    Not(HasSubstr("bytes / "))));
  const auto fits = to_json(advise_backend(all), all)["fits"];
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_TRUE(fits[0]["bytes_per_s"].is_null());
}

TEST(BackendRender, EscapesControlCharacters) {
  std::vector<Measurement> all;
  for (const double bytes : {4, 1024, 65536, 262144})
    all.push_back(cell("all_\033[31mreduce", "gl\033[2Joo", bytes, 1e-6 * bytes));
  for (Measurement& m : all) m.parameters["dtype"] = "\033f32";
  all.push_back(skipped(cell("all_reduce", "gloo", 4, 1), "\033]0;title"));
  const std::string text = rendered(all);
  EXPECT_EQ(text.find('\033'), std::string::npos) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("gl?[2Joo: "), HasSubstr("(?]0;title)"),
                          HasSubstr("all_?[31mreduce, ?f32")));
}

TEST(BackendRender, LimitsDigitsOfAnyNumber) {
  std::vector<Measurement> all = two_backends();
  for (Measurement& m : all) {
    m.metrics["median_s"].value = 1e300;
    m.parameters["devices"] = "1e300";
    m.metrics["p95_s"] = {1e-300, "s", {}, {}, 20, "iterations"};
  }
  EXPECT_LE(most_digits(rendered(all)), 15) << rendered(all);
}

TEST(BackendRender, LeavesOutUndefinedNumbers) {
  std::vector<Measurement> all = two_backends();
  all[0].metrics["median_s"].value = 0;
  Measurement pace{"backend", "pace", {{"devices", "2"}}, {}, {}};
  pace.metrics["slowest_rank"] = {std::nan(""), "", {}, {}, 3, "rounds"};
  pace.metrics["of_others"] = {std::nan(""), "ratio", {}, {}, 3, "rounds"};
  all.push_back(pace);
  EXPECT_THAT(rendered(all), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace howmany::reports
