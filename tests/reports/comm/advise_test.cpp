// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/advise.h"
#include "core/base/schema/reasons.h"
#include "reports/comm/json.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "core/base/text/bytes.h"
#include "core/base/text/json.h"
#include "reports/comm/measure.h"
#include "reports/comm/render.h"
#include "reports/results/cell.h"
#include "reports/results/rounds.h"
#include "tests/reports/comm/examples.h"

namespace howmany::reports {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(BackendAdvice, RecommendsTheFastestAtTheSizeOfABucket) {
  const BackendAdvice advice = advise_backend(two_backends());
  EXPECT_EQ(advice.recommended, "local");
  EXPECT_TRUE(advice.certain);
  EXPECT_EQ(advice.reason, reason::kFastest);
  EXPECT_THAT(advice.because, HasSubstr("16 MiB"));
  const Crossing crossing = advice.operations.at(0).crossing.value();
  EXPECT_EQ(crossing.below, "gloo");
  EXPECT_EQ(crossing.above, "local");
}

TEST(BackendAdvice, DecidesByTheBucketsOfTheModel) {
  std::vector<Measurement> all = two_backends();
  for (const double bytes : {512.0, 1024.0}) {
    all.push_back(cell("all_reduce", "gloo", bytes, 11e-6, "simple_net"));
    all.push_back(cell("all_reduce", "local", bytes, 31e-6, "simple_net"));
  }
  const BackendAdvice advice = advise_backend(all);
  EXPECT_EQ(advice.recommended, "gloo");
  EXPECT_THAT(advice.because, AllOf(HasSubstr("2 gradient buckets of simple_net"), HasSubstr("22"),
                                    HasSubstr("2.8x")));
  EXPECT_THAT(advice.models[0].bytes, ElementsAre(512, 1024));
}

TEST(BackendAdvice, IgnoresABackendThatFailedAtABucket) {
  std::vector<Measurement> all = two_backends();
  all.push_back(cell("all_reduce", "gloo", 512, 11e-6, "mlp"));
  all.push_back(cell("all_reduce", "local", 512, 1e-6, "mlp"));
  all.back().flags = {"failed: peer 1 did not arrive"};
  const BackendAdvice advice = advise_backend(all);
  EXPECT_EQ(advice.recommended, "gloo");
  EXPECT_THAT(advice.notes, Contains(HasSubstr("peer 1 did not arrive")));
}

TEST(BackendAdvice, SaysWhyThereIsNoAnswer) {
  const BackendAdvice advice = advise_backend({});
  EXPECT_FALSE(advice.recommended);
  EXPECT_FALSE(advice.certain);
  EXPECT_EQ(advice.reason, reason::kNothingMeasured);
}

TEST(BackendAdvice, ReportsAFitIfItsErrorIsKnownAndSmall) {
  std::vector<Measurement> all = {cell("all_reduce", "gloo", 1024, 1e-3),
                                  cell("all_reduce", "gloo", 4096, 4e-3)};
  EXPECT_TRUE(advise_backend(all).operations[0].fits.empty()) << "two sizes have no error";
  all.push_back(cell("all_reduce", "gloo", 16384, 17e-3));
  EXPECT_EQ(advise_backend(all).operations[0].fits.size(), 1u);
  all.push_back(cell("all_reduce", "gloo", 2008, 1e-5));
  EXPECT_TRUE(advise_backend(all).operations[0].fits.empty()) << "off by as much as the times";
}

Measurement overlap(double comm, double gemm, double both) {
  Measurement m = cell("overlap", "gloo", 4 * kMiB, both);
  const double hidden = (comm + gemm - both) / std::min(comm, gemm);
  for (const auto& [name, value] : {std::pair{"comm_alone_s", comm},
                                    {"gemm_alone_s", gemm},
                                    {"comm_beside_s", both},
                                    {"gemm_beside_s", gemm},
                                    {"hidden_fraction", hidden}})
    m.metrics[name] = {value, "s", {}, {}, 1, "iterations"};
  return m;
}

TEST(BackendRender, ShowsWhatAnAllReduceHides) {
  const std::vector<Measurement> all = {overlap(2e-3, 6e-3, 7e-3)};
  EXPECT_THAT(render_backend(advise_backend(all), all, false),
              ContainsRegex("gloo +4 MiB +2 ms +7 ms +6 ms +6 ms +50 %"));
}

TEST(BackendRender, ShowsWhatTheGradientsOfAModelCost) {
  std::vector<Measurement> all = two_backends();
  for (const double bytes : {512.0, 1024.0})
    all.push_back(cell("all_reduce", "gloo", bytes, 11e-6, "simple_net"));
  EXPECT_THAT(render_backend(advise_backend(all), all, false),
              AllOf(HasSubstr("Gradients of a step of simple_net: 1.50 KiB in 2 buckets"),
                    ContainsRegex("gloo +22 us +21.8 us to 22.2 us")));
}

Measurement pace(const char* backend, const std::vector<double>& ranks, double of_others) {
  Measurement m = cell("pace", backend, 0, 1e-3);
  m.metrics["slowest_rank"] = metric_over_rounds(ranks, "");
  m.metrics["of_others"] = {of_others, "ratio", {}, {}, 3, "rounds"};
  return m;
}

TEST(BackendAdvice, NamesTheRankThatEveryRoundFoundSlow) {
  const auto notes = [](std::vector<Measurement> all) { return advise_backend(all).notes; };
  const auto named = Contains(HasSubstr("is slow"));
  EXPECT_THAT(notes({pace("gloo", {3, 3, 3}, 1.9), pace("mpi", {3}, 1.4)}),
              Contains(HasSubstr("Rank 3 is slow: the same work takes it 1.40x as long")));
  EXPECT_THAT(notes({pace("gloo", {0, 0, 0}, 1.9)}), Contains(HasSubstr("Rank 0 is slow")));
  EXPECT_THAT(notes({pace("gloo", {3, 3, 3}, 1.1)}), Not(named));
  EXPECT_THAT(notes({pace("gloo", {0, 1, 2}, 1.9)}), Not(named));
  EXPECT_THAT(notes({pace("gloo", {3, 3, 3}, 1.9), pace("mpi", {1, 1, 1}, 1.9)}), Not(named));
}

TEST(BackendAdvice, UsesTheLargestNumberOfRanks) {
  std::vector<Measurement> all = {
      cell("all_reduce", "gloo", 512, 1e-6, "mlp"), pace("gloo", {0}, 9),
      cell("all_reduce", "gloo", 512, 5e-6, "mlp"), pace("gloo", {2}, 2)};
  for (const size_t i : {2, 3}) all[i].parameters["devices"] = "3";
  const BackendAdvice advice = advise_backend(all);
  EXPECT_DOUBLE_EQ(advice.models[0].times.at("gloo").seconds, 5e-6);
  EXPECT_THAT(advice.notes, Contains(HasSubstr("Rank 2 is slow: the same work takes it 2.00x")));
}

TEST(BackendAdvice, WritesNullForUndefinedNumbers) {
  std::vector<Measurement> all = {cell("all_reduce", "local", 4, 1e-6)};
  all[0].metrics.erase("busbw_bytes_per_s");
  const std::string json = dump_json(to_json(advise_backend(all), all));
  EXPECT_THAT(json, HasSubstr("\"busbw_bytes_per_s\": null"));
  EXPECT_THAT(json, Not(HasSubstr("nan")));
  EXPECT_THAT(json, Not(HasSubstr("inf")));
}

TEST(BackendRender, NamesNoFastestOfOneBackend) {
  std::vector<Measurement> all = two_backends();
  all.push_back(cell("all_reduce", "gloo", 96, 1e-6));
  all.push_back(cell("all_reduce", "gloo", 72, 1e-6));
  all.back().parameters["dtype"] = "bf16";
  const std::string text = render_backend(advise_backend(all), all, false);
  EXPECT_THAT(text, ContainsRegex("96 B +[^\n]* - +- +- +-\n"));
  EXPECT_THAT(text, ContainsRegex("64 B +[^\n]* gloo\n"));
  EXPECT_EQ(text.find("72 B"), text.rfind("72 B"));
}

TEST(BackendRender, ShowsAnUndefinedBusBandwidth) {
  std::vector<Measurement> all = {cell("all_reduce", "local", 4, 1e-6)};
  all[0].metrics.erase("busbw_bytes_per_s");
  EXPECT_THAT(render_backend(advise_backend(all), all, false), HasSubstr("not defined"));
}

TEST(Measurements, HaveTheIntervalsOfTheirSamples) {
  SuiteRun run;
  BenchRow row;
  row.name = "backend/all_reduce/gloo/dtype:f32/devices:2/bytes:1000";
  row.counters = {{"median_s", 1e-3}, {"busbw_bytes_per_s", 1e6}, {"bytes", 1000}};
  run.file.rows = {row};
  SampleLine line;
  line.name = row.name;
  line.seconds = {0.8e-3, 0.9e-3, 1e-3, 1e-3, 1.1e-3, 1.25e-3};
  line.json = {{"parameters", {{"timing", "isolated"}}}};
  run.samples = {line};
  const Measurement m = measurements_of(run).at(0);
  EXPECT_EQ(m.name, "all_reduce/gloo");
  EXPECT_EQ(parameter_of(m, "bytes"), "1000");
  EXPECT_DOUBLE_EQ(*m.metrics.at("median_s").low, 0.8e-3);
  EXPECT_DOUBLE_EQ(*m.metrics.at("busbw_bytes_per_s").low, 0.8e6);
  EXPECT_EQ(m.metrics.at("median_s").n, 6);
}

TEST(PlanRounds, FillsTheBudget) {
  EXPECT_EQ(plan_rounds(600, 3), 5);
  EXPECT_EQ(plan_rounds(57, 3), 3);
  EXPECT_EQ(plan_rounds(30, 3), 1);
  EXPECT_EQ(plan_rounds(1, 3, 7), 7);
}

TEST(Bytes, ParseAndPrintBinaryUnits) {
  EXPECT_EQ(format_rate(524), "524 B/s");
  EXPECT_EQ(format_rate(2.5e9), "2.50 GB/s");
  EXPECT_EQ(parse_bytes("--max-bytes", "25M"), 25 << 20);
  EXPECT_EQ(parse_bytes("--max-bytes", "16KiB"), 16384);
  EXPECT_EQ(parse_bytes("--max-bytes", "40GB"), 40'000'000'000);
  EXPECT_EQ(format_bytes(16384), "16 KiB");
  EXPECT_EQ(format_bytes(4), "4 B");
  for (const char* bad : {"", "x", "0", "-4", "4Q", "1e30"})
    EXPECT_THROW(parse_bytes("--max-bytes", bad), InputError) << bad;
}

}  // namespace
}  // namespace howmany::reports
