// SPDX-License-Identifier: Apache-2.0
#include "reports/comm/advise.h"
#include "core/base/schema/reasons.h"
#include "reports/comm/json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/text/bytes.h"
#include "core/base/text/json.h"
#include "reports/comm/choice.h"
#include "reports/comm/command.h"
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

Curve line(double latency, double per_byte, double last = 64 * kMiB) {
  Curve curve;
  for (double bytes = 4; bytes <= last; bytes *= 4) {
    const double seconds = latency + per_byte * bytes;
    curve.push_back({bytes, seconds, Interval{0.99 * seconds, 1.01 * seconds}});
  }
  return curve;
}

TEST(BestRanges, CrossWhereTheLinesCross) {
  const std::vector<BestRange> best =
      best_ranges({{"gloo", line(10e-6, 2e-9)}, {"local", line(30e-6, 0.5e-9)}});
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].backend, "gloo");
  EXPECT_EQ(best[1].backend, "local");
  const double truth = 20e-6 / 1.5e-9;
  EXPECT_NEAR(std::log2(best[1].from / truth), 0, 0.5);
  EXPECT_THAT(in_words(best), AllOf(HasSubstr("gloo below 1"), HasSubstr("local above")));
}

TEST(BestRanges, AreUncertainWhereIntervalsOverlap) {
  const auto with = [](double seconds, double half) {
    return Curve{{4, seconds, Interval{seconds - half, seconds + half}}};
  };
  EXPECT_TRUE(best_ranges({{"a", with(1, 0.1)}, {"b", with(2, 0.1)}})[0].certain);
  EXPECT_FALSE(best_ranges({{"a", with(1, 0.6)}, {"b", with(2, 0.6)}})[0].certain);
  EXPECT_TRUE(best_ranges({{"a", with(1, 0.1)}, {"b", {{8, 1}}}}).empty());
}

TEST(BackendAdvice, RecommendsWhatIsFastestAtTheSizeOfABucket) {
  const BackendAdvice advice = advise_backend(two_backends());
  EXPECT_EQ(advice.recommended, "local");
  EXPECT_TRUE(advice.certain);
  EXPECT_THAT(advice.because,
              AllOf(HasSubstr("Use local"), HasSubstr("gloo below"), HasSubstr("16 MiB")));
}

TEST(BackendAdvice, DecidesByTheModelsBucketsWhenItHasThem) {
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

TEST(BackendAdvice, ABackendThatFailedAtABucketNeverWins) {
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

TEST(BackendAdvice, ComparesWithTheCeilingOfTheSameRoad) {
  std::vector<Measurement> all = two_backends();
  const auto ceiling = [&](const char* kind, const char* threads, double rate) {
    Measurement m{"transfer", kind, {{"bytes", "67108864"}, {"threads", threads}}, {}, {}};
    m.metrics["bytes_per_s"] = {rate, "bytes/s", {}, {}, 5, "iterations"};
    all.push_back(m);
  };
  ceiling("copy", "1", 5e9);
  ceiling("copy", "2", 8e9);
  ceiling("loopback_tcp", "", 1e9);
  const BackendAdvice advice = advise_backend(all);
  ASSERT_EQ(advice.verdicts.size(), 2u);
  EXPECT_EQ(advice.verdicts[0].backend, "gloo");
  EXPECT_NEAR(advice.verdicts[0].ratio(), 0.5, 0.01);   // 0.5 of 1 GB/s
  EXPECT_NEAR(advice.verdicts[1].ratio(), 0.25, 0.01);  // 2 of 8 GB/s
  std::erase_if(all, [](const Measurement& m) {
    return number_of(m, "bytes") == 64 * kMiB && m.suite == "backend";
  });
  EXPECT_EQ(advise_backend(all).verdicts.size(), 2u);
  std::erase_if(all, [](const Measurement& m) { return number_of(m, "bytes") == 16 * kMiB; });
  const std::vector<PathVerdict> left = advise_backend(all).verdicts;
  ASSERT_EQ(left.size(), 1u) << "caches move more than memory does";
  EXPECT_EQ(left[0].backend, "gloo");
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

TEST(BackendAdvice, JudgesOnlyNcclOnAGpuThatTheTableKnows) {
  std::vector<Measurement> all = {cell("all_reduce", "nccl", kMiB, kMiB / 20e9)};
  all[0].parameters["devices"] = "8";
  EXPECT_TRUE(advise_backend(all).references.empty());
  const BackendAdvice advice = advise_backend(all, "NVIDIA H200");
  ASSERT_EQ(advice.references.size(), 1u);
  EXPECT_EQ(advice.references[0].verdict, "low");
  EXPECT_THAT(advice.notes, Contains(HasSubstr("ml-engineering")));
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

TEST(BackendAdvice, SaysWhetherAnAllReduceHidesBesideMatrixProducts) {
  EXPECT_THAT(advise_backend({overlap(2e-3, 6e-3, 7e-3)}).notes,
              Contains(HasSubstr("hides 50 % of the shorter")));
  EXPECT_THAT(advise_backend({overlap(2e-3, 6e-3, 10e-3)}).notes,
              Contains(HasSubstr("both at once take 25 % longer than one after the other")));
  EXPECT_THAT(advise_backend({overlap(2e-3, 6e-3, 5.9e-3)}).notes,
              Contains(HasSubstr("hides 100 % of the shorter")));
  EXPECT_THAT(advise_backend({overlap(2e-3, 6e-3, 5e-3)}).notes,
              Contains(HasSubstr("times varied too much to judge")));
}

Measurement pace(const char* backend, const std::vector<double>& ranks, double of_others,
                 const char* op = "pace") {
  Measurement m = cell(op, backend, 0, 1e-3);
  m.metrics["slowest_rank"] = metric_over_rounds(ranks, "");
  m.metrics["of_others"] = {of_others, "ratio", {}, {}, 3, "rounds"};
  return m;
}

TEST(BackendAdvice, NamesTheRankThatEveryRoundOverEveryBackendFoundSlow) {
  const auto notes = [](std::vector<Measurement> all) { return advise_backend(all).notes; };
  const auto named = Contains(HasSubstr("is slow"));
  EXPECT_THAT(notes({pace("gloo", {3, 3, 3}, 1.9), pace("mpi", {3}, 1.4)}),
              Contains(HasSubstr("Rank 3 is slow: the same work takes it 1.40x as long")));
  EXPECT_THAT(notes({pace("gloo", {0, 0, 0}, 1.9)}), Contains(HasSubstr("Rank 0 is slow")));
  EXPECT_THAT(notes({pace("gloo", {3, 3, 3}, 1.1)}), Not(named));
  EXPECT_THAT(notes({pace("gloo", {0, 1, 2}, 1.9)}), Not(named));
  EXPECT_THAT(notes({pace("gloo", {3, 3, 3}, 1.9), pace("mpi", {1, 1, 1}, 1.9)}), Not(named));
}

TEST(BackendAdvice, OfSeveralNumbersOfRanksTheLargestSpeaks) {
  std::vector<Measurement> all = {
      cell("all_reduce", "gloo", 512, 1e-6, "mlp"), pace("gloo", {0}, 9),
      cell("all_reduce", "gloo", 512, 5e-6, "mlp"), pace("gloo", {2}, 2)};
  for (const size_t i : {2, 3}) all[i].parameters["devices"] = "3";
  const BackendAdvice advice = advise_backend(all);
  EXPECT_DOUBLE_EQ(advice.models[0].times.at("gloo").seconds, 5e-6);
  EXPECT_THAT(advice.notes, Contains(HasSubstr("Rank 2 is slow: the same work takes it 2.00x")));
}

TEST(BackendAdvice, NamesTheRankThatEveryRoundOfABackendFoundBehindSlowLinks) {
  const auto notes = [](std::vector<Measurement> all) { return advise_backend(all).notes; };
  EXPECT_THAT(notes({pace("gloo", {2, 2}, 4, "links"), pace("local", {0, 1}, 1.4, "links")}),
              Contains(HasSubstr("Rank 2 has slow links over gloo: a message takes 4.00x")));
  EXPECT_THAT(notes({pace("gloo", {2, 1}, 4, "links")}), Not(Contains(HasSubstr("slow links"))));
}

TEST(BackendAdvice, JsonHoldsNoNumberThatIsNone) {
  std::vector<Measurement> all = {cell("all_reduce", "local", 4, 1e-6)};
  all[0].metrics.erase("busbw_bytes_per_s");
  const std::string json = dump_json(to_json(advise_backend(all), all));
  EXPECT_THAT(json, HasSubstr("\"busbw_bytes_per_s\": null"));
  EXPECT_THAT(json, Not(HasSubstr("nan")));
  EXPECT_THAT(json, Not(HasSubstr("inf")));
}

TEST(BackendRender, NamesNoneTheFastestOfOneAndKeepsDtypesApart) {
  std::vector<Measurement> all = two_backends();
  all.push_back(cell("all_reduce", "gloo", 96, 1e-6));
  all.push_back(cell("all_reduce", "gloo", 72, 1e-6));
  all.back().parameters["dtype"] = "bf16";
  const std::string text = render_backend(advise_backend(all), all, false);
  EXPECT_THAT(text, ContainsRegex("96 B +[^\n]* - +- +- +-\n"));
  EXPECT_THAT(text, ContainsRegex("64 B +[^\n]* gloo\n"));
  EXPECT_EQ(text.find("72 B"), text.rfind("72 B"));
}

TEST(BackendRender, ShowsAUndefinedBusBandwidthAsSuch) {
  std::vector<Measurement> all = {cell("all_reduce", "local", 4, 1e-6)};
  all[0].metrics.erase("busbw_bytes_per_s");
  EXPECT_THAT(render_backend(advise_backend(all), all, false), HasSubstr("not defined"));
}

TEST(Measurements, CarryIntervalsOfTheirSamples) {
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

Measurement timed(double seconds) { return cell("all_reduce", "gloo", 4, seconds); }
Measurement untimed(const std::string& why) {
  Measurement m = timed(0);
  m.metrics.clear();
  m.flags = {why};
  return m;
}

TEST(Rounds, BecomeTheirMedianWithAnIntervalForTheNext) {
  const auto table = over_rounds({{timed(1)}, {timed(4)}, {timed(2)}});
  ASSERT_EQ(table.size(), 1u);
  const Metric& m = table[0].metrics.at("median_s");
  EXPECT_DOUBLE_EQ(m.value, 2);
  // Logarithms 0, 1 and 2 (base 2): t with two degrees of freedom is 4.303, times sqrt(2/3).
  EXPECT_NEAR(*m.low, std::exp2(1 - 4.3027 * std::sqrt(2.0 / 3)), 1e-4);
  EXPECT_NEAR(*m.high, std::exp2(1 + 4.3027 * std::sqrt(2.0 / 3)), 1e-2);
  EXPECT_EQ(m.n, 3);
  EXPECT_EQ(m.basis, "rounds");
}

TEST(Rounds, CellsThatFailedOnceHaveFailed) {
  const auto table = over_rounds({{timed(1)}, {untimed("failed: wrong data")}, {timed(1)}});
  EXPECT_TRUE(has_wrong_data(table));
  EXPECT_TRUE(table.at(0).metrics.empty());
}

TEST(Rounds, CellsAreSkippedWhenNoRoundHadTimeForThem) {
  const auto late = untimed("skipped: no time left");
  EXPECT_EQ(why_skipped(over_rounds({{late}, {late}}).at(0)), "no time left");
  const auto once = over_rounds({{late}, {timed(3)}});
  EXPECT_EQ(why_skipped(once.at(0)), "");
  EXPECT_DOUBLE_EQ(value_of(once.at(0), "median_s"), 3);
}

TEST(Rounds, KeepCellsApartAndInOrder) {
  const Measurement other = cell("broadcast", "gloo", 4, 7);
  const auto table = over_rounds({{timed(1), other}, {other}});
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].name, "all_reduce/gloo");
  EXPECT_EQ(table[1].metrics.at("median_s").n, 2);
}

TEST(Rounds, KeepEqualBucketsOfAModelApart) {
  const auto bucket = [](double seconds) { return cell("all_reduce", "gloo", 4, seconds, "mlp"); };
  const auto table = over_rounds({{bucket(1), bucket(3)}, {bucket(1), bucket(3)}});
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[1].metrics.at("median_s").n, 2);
  EXPECT_DOUBLE_EQ(advise_backend(table).models.at(0).times.at("gloo").seconds, 4);
}

TEST(Rounds, AreAsManyAsThereIsTimeFor) {
  EXPECT_EQ(plan_rounds(600, 3), 5);
  EXPECT_EQ(plan_rounds(57, 3), 3);
  EXPECT_EQ(plan_rounds(30, 3), 1);
  EXPECT_EQ(plan_rounds(1, 3, 7), 7);
}

TEST(RoundTime, RunsShareWhatIsLeftBesideTheirStarts) {
  RoundTime time(60);
  const std::vector<std::string> runs = {"local", "mpi", "local", "mpi"};
  const double first = time.seconds_next(0, runs);
  EXPECT_LT(first, 15);
  time.took("local", {.seconds = first + 0.5, .measuring = first});
  time.took("mpi", {.seconds = first + 2.5, .measuring = first});
  EXPECT_DOUBLE_EQ(time.seconds_next(2 * first + 3, std::span(runs).subspan(2)), 27 - first);
  EXPECT_GT(time.seconds_next(100, runs), 0);
}

// Returns the seconds assigned to each of `runs` if each uses exactly that, after a round that
// reported the needs.
std::vector<double> dealt(double left, const std::map<std::string, RoundTime::Run>& told,
                          const std::vector<std::string>& runs) {
  RoundTime time(left);
  for (const auto& [backend, run] : told) time.took(backend, run);
  std::vector<double> all;
  double now = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    all.push_back(time.seconds_next(now, std::span(runs).subspan(i)));
    now += all.back();
    time.took(runs[i],
              {.needs = told.at(runs[i]).needs, .whole = all.back() >= told.at(runs[i]).needs});
  }
  return all;
}

TEST(RoundTime, ASlowBackendHasWhatAFastOneDoesNotNeed) {
  const auto all = dealt(24, {{"gloo", {.needs = 8}}, {"local", {.needs = 1}}},
                         {"local", "gloo", "local", "gloo"});
  EXPECT_THAT(all, ::testing::ElementsAre(4, 8, 4, 8));
}

TEST(RoundTime, WhatLeftCasesOutHasOneWholeRunBeforeTheOthersHaveAnother) {
  const auto all = dealt(16, {{"gloo", {.needs = 10, .whole = false}}, {"local", {.needs = 2}}},
                         {"local", "gloo", "local", "gloo"});
  EXPECT_THAT(all, ::testing::ElementsAre(2, 10, 2, 2));
}

TEST(RoundTime, WhatNeedsLeastHasItWhereThereIsTooLittleForAll) {
  const auto all = dealt(12, {{"gloo", {.needs = 20}}, {"local", {.needs = 4}}}, {"local", "gloo"});
  EXPECT_THAT(all, ::testing::ElementsAre(4, 8));
}

TEST(RoundTime, ABackendThatCannotBeWholeLeavesTheOthersAQuarter) {
  RoundTime time(40);
  time.took("gloo", {.needs = 1e6, .whole = false});
  time.took("local", {.needs = 5});
  EXPECT_DOUBLE_EQ(time.seconds_next(0, std::vector<std::string>{"gloo", "local", "gloo"}), 30);
  EXPECT_DOUBLE_EQ(time.seconds_next(0, std::vector<std::string>{"local", "gloo", "gloo"}), 5);
}

TEST(TimeNeeded, IsTheSumOverRowsAndWasNotHadWhereOneWasLeftOut) {
  const auto row = [](std::map<std::string, double> counters) {
    BenchRow made;
    made.name = "backend/all_reduce/gloo/bytes:4";
    made.counters = std::move(counters);
    return made;
  };
  SuiteRun run;
  run.file.rows = {row({{"median_s", 1}, {"needs_s", 3}}), row({{"skipped", 1}})};
  EXPECT_DOUBLE_EQ(time_needed(run).seconds, 3);
  EXPECT_TRUE(time_needed(run).had) << "what does not fit into memory needs no time";
  EXPECT_FALSE(measurements_of(run).at(0).metrics.contains("needs_s"));
  run.file.rows.push_back(row({{"skipped", 1}, {"needs_s", 4}}));
  EXPECT_DOUBLE_EQ(time_needed(run).seconds, 7);
  EXPECT_FALSE(time_needed(run).had);
}

TEST(Bytes, AreReadAndWrittenInBinaryUnits) {
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
