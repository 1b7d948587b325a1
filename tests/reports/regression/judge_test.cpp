// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/judge.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "reports/regression/text.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using ::testing::HasSubstr;

// Returns `n` samples around `center`, with the noise of a shared machine: 4 % between launches.
std::vector<Sample> noisy(std::mt19937_64& rng, int n, double center, double spread = 0.04) {
  std::normal_distribution<double> noise(0, spread);
  std::vector<Sample> samples;
  for (int i = 0; i < n; ++i) samples.push_back({i, center * std::exp(noise(rng))});
  return samples;
}

Benchmark bench(const std::string& name, std::vector<Sample> times) {
  Benchmark b;
  b.name = name;
  b.metrics["real_time"] = std::move(times);
  return b;
}

Suite suite(std::vector<Benchmark> benchmarks, bool in_turns = true) {
  Suite s;
  s.benchmarks = std::move(benchmarks);
  s.context = {{"num_cpus", 2}};
  if (in_turns) s.context["howmany_blocks"] = "id";
  return s;
}

const Row& row_of(const Comparison& c, const std::string& name) {
  for (const Row& row : c.rows) {
    if (row.benchmark == name) return row;
  }
  throw std::out_of_range(name);
}

Row judged(std::vector<Sample> a, std::vector<Sample> b, bool in_turns = true,
           const JudgeOptions& options = {}) {
  return judge(suite({bench("a", std::move(a))}, in_turns),
               suite({bench("a", std::move(b))}, in_turns), options)
      .rows.at(0);
}

TEST(Judge, FindsARealSlowdownAndARealGain) {
  std::mt19937_64 rng(1);
  const auto base = noisy(rng, 30, 1e-3, 0.02);
  const Row slower = judged(base, noisy(rng, 30, 1.1e-3, 0.02));
  EXPECT_EQ(slower.verdict, Verdict::kSlower);
  EXPECT_NEAR(*slower.change, 0.1, 0.03);
  EXPECT_LT(slower.interval->low, *slower.change);
  EXPECT_GT(slower.interval->high, *slower.change);
  EXPECT_EQ(judged(base, noisy(rng, 30, 0.9e-3, 0.02)).verdict, Verdict::kFaster);
  EXPECT_EQ(judged(base, noisy(rng, 30, 1e-3, 0.02)).verdict, Verdict::kSame);
}

TEST(Judge, CallsASmallerRateSlower) {
  std::mt19937_64 rng(2);
  Suite a = suite({bench("a", noisy(rng, 20, 1))}), b = suite({bench("a", noisy(rng, 20, 1))});
  a.benchmarks[0].metrics["items_per_second"] = noisy(rng, 20, 100);
  b.benchmarks[0].metrics["items_per_second"] = noisy(rng, 20, 85);
  JudgeOptions options;
  options.metrics = {"items_per_second"};
  const Comparison c = judge(a, b, options);
  ASSERT_EQ(c.rows.size(), 1u);
  EXPECT_EQ(c.rows[0].verdict, Verdict::kSlower);
  EXPECT_NEAR(*c.rows[0].change, -0.15, 0.04);
  EXPECT_LT(c.rows[0].interval->low, c.rows[0].interval->high);
  EXPECT_LT(c.rows[0].interval->low, -0.15);
}

TEST(Judge, CallsAChangeBelowTheFloorSame) {
  std::mt19937_64 rng(3);
  const auto base = noisy(rng, 40, 1, 0.0005), candidate = noisy(rng, 40, 1.008, 0.0005);
  EXPECT_EQ(judged(base, candidate).verdict, Verdict::kSame);
  JudgeOptions options;
  options.min_effect = 0.004;
  EXPECT_EQ(judged(base, candidate, true, options).verdict, Verdict::kSlower);
}

TEST(Judge, PairsBlocksThatBothSidesHave) {
  std::mt19937_64 rng(4);
  auto a = noisy(rng, 20, 1), b = a;
  for (Sample& s : b) s.value *= 1.05;  // exactly, block by block
  a.erase(a.begin() + 3);
  b.erase(b.begin() + 7);
  const Row row = judged(a, b);
  EXPECT_EQ(row.base_samples, 18);
  EXPECT_NEAR(*row.change, 0.05, 1e-9);
  EXPECT_NEAR(row.interval->high, 0.05, 1e-9);
}

TEST(Judge, NotesThatSamplesAreUnpaired) {
  std::mt19937_64 rng(5);
  const Comparison c = judge(suite({bench("a", noisy(rng, 20, 1))}, false),
                             suite({bench("a", noisy(rng, 25, 1.2))}, false), {});
  EXPECT_FALSE(c.paired);
  EXPECT_THAT(c.notes.at(0), HasSubstr("interleave"));
  EXPECT_EQ(c.rows[0].verdict, Verdict::kSlower);
  EXPECT_EQ(c.rows[0].floor, kUnpairedEffect);
}

TEST(Judge, ReportsTheNumberOfSamplesNeeded) {
  std::mt19937_64 rng(6);
  const Row one = judged(noisy(rng, 1, 1), noisy(rng, 1, 2), false);
  EXPECT_EQ(one.verdict, Verdict::kInconclusive);
  EXPECT_EQ(one.needed, 4);
  EXPECT_THAT(one.why, HasSubstr("--benchmark_repetitions=4"));
  const Row wide = judged(noisy(rng, 10, 1, 0.2), noisy(rng, 10, 1, 0.2));
  EXPECT_EQ(wide.verdict, Verdict::kInconclusive);
  EXPECT_GT(wide.needed, 50);
}

TEST(Judge, HoldsTheWholeSuiteToOneChanceOfAFalseAlarm) {
  std::mt19937_64 rng(7);
  int alarms = 0, plain = 0;
  JudgeOptions options;
  options.min_effect = 0;
  for (int gate = 0; gate < 200; ++gate) {
    std::vector<Benchmark> a, b;
    for (int i = 0; i < 20; ++i) {
      a.push_back(bench(std::to_string(i), noisy(rng, 20, 1)));
      b.push_back(bench(std::to_string(i), noisy(rng, 20, 1)));
    }
    const Comparison c = judge(suite(a), suite(b), options);
    alarms += c.count(Verdict::kSlower) > 0;
    plain += std::any_of(c.rows.begin(), c.rows.end(),
                         [](const Row& row) { return *row.p_slower <= 1.0; });
  }
  EXPECT_LE(alarms, 20);  // 5 % expected; 64 % without correction
  EXPECT_EQ(plain, 200);
}

TEST(Judge, ComparesExactMetricsExactly) {
  Suite a = suite({}), b = suite({});
  for (const auto& [name, before, now] :
       {std::tuple{"more", 100.0, 101.0}, {"less", 100.0, 99.0}, {"same", 100.0, 100.0}}) {
    Benchmark x;
    x.name = name;
    x.metrics["allocs_per_iter"] = {{0, before}};
    a.benchmarks.push_back(x);
    x.metrics["allocs_per_iter"] = {{0, now}};
    b.benchmarks.push_back(x);
  }
  const Comparison c = judge(a, b, {});
  EXPECT_EQ(row_of(c, "more").verdict, Verdict::kSlower);
  EXPECT_EQ(row_of(c, "less").verdict, Verdict::kFaster);
  EXPECT_EQ(row_of(c, "same").verdict, Verdict::kSame);
  EXPECT_EQ(exit_code(c, false), 1);
}

TEST(Judge, TestsAnExactMetricThatVaries) {
  std::mt19937_64 rng(8);
  Suite a = suite({bench("a", {})}), b = a;
  a.benchmarks[0].metrics = {{"bytes", noisy(rng, 20, 1000, 0.01)}};
  b.benchmarks[0].metrics = {{"bytes", noisy(rng, 20, 1000, 0.01)}};
  const Row row = judge(a, b, {}).rows.at(0);
  EXPECT_EQ(row.verdict, Verdict::kSame);
  EXPECT_FALSE(row.kind.exact);
  EXPECT_THAT(row.why, HasSubstr("differs from run to run"));
}

TEST(Judge, ListsBenchmarksOfOneSide) {
  std::mt19937_64 rng(9);
  const auto times = noisy(rng, 10, 1);
  const Comparison c = judge(suite({bench("stays", times), bench("matmul/128", times)}),
                             suite({bench("stays", times), bench("matmul/129", times)}), {});
  EXPECT_EQ(row_of(c, "matmul/128").verdict, Verdict::kMissing);
  EXPECT_EQ(row_of(c, "matmul/129").verdict, Verdict::kNew);
  ASSERT_EQ(c.renamed.size(), 1u);
  EXPECT_EQ(c.renamed[0].second, "matmul/129");
}

TEST(Judge, PairsTheNearestNamesOfTheTwoSides) {
  std::mt19937_64 rng(9);
  const auto times = noisy(rng, 10, 1);
  const std::string prefix = "BM_" + std::string(100, 'x');
  const Comparison c =
      judge(suite({bench("BM_Sort/1024", times), bench("BM_x", times),
                   bench(prefix + "<int>/8", times), bench("alone", times)}),
            suite({bench("BM_x/real_time", times), bench(prefix + "<int32_t>/8", times),
                   bench("bm_sorts/1024", times), bench("other", times)}),
            {});
  EXPECT_THAT(c.renamed,
              ::testing::UnorderedElementsAre(
                  std::pair("BM_Sort/1024", "bm_sorts/1024"), std::pair("BM_x", "BM_x/real_time"),
                  std::pair(prefix + "<int>/8", prefix + "<int32_t>/8")));
}

TEST(Judge, PutsARegressionBeforeAFailedSide) {
  std::mt19937_64 rng(10);
  Benchmark broken = bench("b", {});
  broken.error = "wrong result";
  const Suite a = suite({bench("a", noisy(rng, 20, 1, 0.01)), bench("b", noisy(rng, 20, 1))});
  const Comparison c = judge(a, suite({bench("a", noisy(rng, 20, 1, 0.01)), broken}), {});
  EXPECT_EQ(row_of(c, "b").why, "candidate: wrong result");
  EXPECT_EQ(exit_code(c, false), 3);
  EXPECT_EQ(exit_code(judge(a, suite({bench("a", noisy(rng, 20, 2)), broken}), {}), false), 1);
}

TEST(Judge, FailsIfNothingIsCompared) {
  Benchmark skipped = bench("a", {});
  skipped.skipped = "no GPU here";
  const Suite a = suite({bench("a", {{0, 1}})});
  for (const Suite& b : {suite({}), suite({bench("b", {{0, 1}})}), suite({skipped})}) {
    const Comparison c = judge(a, b, {});
    EXPECT_TRUE(c.nothing_compared());
    EXPECT_EQ(exit_code(c, false), 3);
    EXPECT_THAT(headline(c), HasSubstr("Nothing was compared"));
  }
  Comparison identical;
  identical.identical = true;
  EXPECT_EQ(exit_code(identical, true), 0);
}

TEST(Judge, ExitsWith5IfStrictOrNothingIsJudged) {
  std::mt19937_64 rng(11);
  const auto times = noisy(rng, 20, 1, 0.001);
  Suite a = suite({bench("a", {{0, 1}}), bench("b", times)});
  const Comparison some = judge(a, a, {});
  EXPECT_EQ(exit_code(some, false), 0);
  EXPECT_EQ(exit_code(some, true), 5);
  a.benchmarks.pop_back();
  EXPECT_EQ(exit_code(judge(a, a, {}), false), 5);
}

TEST(Judge, ExitsWith5IfOnlyExactMetricsAreJudged) {
  Suite a = suite({bench("a", {{0, 1}})}), b = suite({bench("a", {{0, 100}})});
  for (Suite* side : {&a, &b}) side->benchmarks[0].metrics["bytes"] = {{0, 64}};
  const Comparison c = judge(a, b, {});
  EXPECT_EQ(c.count(Verdict::kSame), 1);
  EXPECT_EQ(exit_code(c, false), 5);
  a.benchmarks[0].metrics.erase("real_time");
  EXPECT_EQ(exit_code(judge(a, a, {}), false), 0);
}

TEST(Judge, NamesTheLargestChangeIfNothingIsJudged) {
  const std::string name(5000, 'x');
  const Comparison c =
      judge(suite({bench("small", {{0, 1}}), bench(name, {{0, 1}})}, false),
            suite({bench("small", {{0, 1.5}}), bench(name, {{0, 100}})}, false), {});
  EXPECT_THAT(headline(c), HasSubstr("1 run a side"));
  EXPECT_THAT(headline(c), HasSubstr("+9900 %"));
  EXPECT_LT(headline(c).size(), 200u);
}

TEST(Judge, SkipsTimesBelowATenthOfANanosecond) {
  const auto times = [](double center) {
    std::mt19937_64 rng(1);
    return noisy(rng, 20, center, 0.01);
  };
  const Row empty = judged(times(3e-16), times(4e-16));
  EXPECT_EQ(empty.verdict, Verdict::kSkipped);
  EXPECT_THAT(empty.why, HasSubstr("0.1 ns"));
  EXPECT_EQ(judged(times(3e-16), times(4e-9)).verdict, Verdict::kSlower);
  EXPECT_EQ(judged(times(3e-10), times(4e-10)).verdict, Verdict::kSlower);
}

TEST(ChangeText, IsShortForEveryNumber) {
  EXPECT_EQ(change_text(0.05214), "+5.21 %");
  EXPECT_EQ(change_text(99), "+9900 %");
  EXPECT_EQ(change_text(1e300), "> 1000x");
  EXPECT_EQ(change_text(std::nan("")), "-");
  EXPECT_EQ(ratio_text(1.0534), "1.053");
  EXPECT_EQ(ratio_text(1e308), "> 1000x");
  EXPECT_EQ(interval_text(Interval{-0.01, 0.02}), "[-1.00, +2.00] %");
  EXPECT_LT(interval_text(Interval{-0.01, 1e300}).size(), 30u);
}

TEST(Likeness, NamesTheCachesThatDiffer) {
  const auto machine = [](int l2) {
    return nlohmann::json{{"caches",
                           {{{"level", 1}, {"type", "Data"}, {"size", 32768}},
                            {{"level", 2}, {"type", "Unified"}, {"size", l2}}}}};
  };
  const Likeness other = likeness(machine(1), machine(2));
  EXPECT_EQ(other.level, Likeness::Level::kNot);
  EXPECT_EQ(refusal(other), "other machine: L2 caches differ");
  EXPECT_EQ(refusal(likeness(machine(1), {{"caches", 1}})), "other machine: L1-L2 caches differ");
  EXPECT_EQ(refusal(likeness({{"gpus", {1}}}, {{"gpus", {2}}})), "other machine: gpus differs");
  const nlohmann::json debug = {{"library_build_type", "debug"}},
                       release = {{"library_build_type", "release"}};
  EXPECT_THAT(refusal(likeness(debug, release)), HasSubstr("other build: "));
}

TEST(Judge, CallsValuesWithoutARatioInconclusive) {
  JudgeOptions options;
  options.metrics = {"all"};
  Suite a = suite({bench("a", {})});
  a.benchmarks[0].metrics = {{"latency", {{0, -1}, {1, 2}}}};
  EXPECT_THAT(judge(a, a, options).rows.at(0).why, HasSubstr("no ratio"));
}

TEST(Judge, FindsAChangeOfAllBenchmarksTogether) {
  std::mt19937_64 rng(12);
  std::vector<Benchmark> a, b;
  for (int i = 0; i < 20; ++i) {
    a.push_back(bench(std::to_string(i), noisy(rng, 10, 1)));
    b.push_back(bench(std::to_string(i), noisy(rng, 10, 1.02)));
  }
  const Comparison c = judge(suite(a), suite(b), {});
  EXPECT_NEAR(*c.suite_change, 0.02, 0.008);
  EXPECT_GT(c.suite_interval->low, 0);
}

TEST(Likeness, IgnoresDateAndLoad) {
  const nlohmann::json a = {{"cpu", "X"}, {"date", "1"}, {"host_name", "h"}, {"num_cpus", 2}};
  nlohmann::json b = a;
  b["date"] = "2";
  EXPECT_EQ(likeness(a, b).level, Likeness::Level::kSame);
  b["host_name"] = "i";
  EXPECT_EQ(likeness(a, b).level, Likeness::Level::kComparable);
  b["cpu"] = "Y";
  EXPECT_EQ(likeness(a, b).level, Likeness::Level::kNot);
  EXPECT_THAT(likeness(a, b).decisive.at(0), HasSubstr("cpu: X in the base, Y in the candidate"));
  b.erase("cpu");
  EXPECT_EQ(likeness(a, b).level, Likeness::Level::kComparable);
}

TEST(MetricKind, FollowsFromTheName) {
  EXPECT_EQ(metric_kind("real_time")->better, Better::kLess);
  EXPECT_EQ(metric_kind("tokens_per_s")->better, Better::kMore);
  EXPECT_EQ(metric_kind("busbw_bytes_per_s")->better, Better::kMore);
  EXPECT_FALSE(metric_kind("busbw_bytes_per_s")->exact);
  EXPECT_TRUE(metric_kind("moved_bytes")->exact);
  EXPECT_TRUE(metric_kind("kernel_launches")->exact);
  EXPECT_FALSE(metric_kind("loss"));
  MetricKinds kinds;
  add_metric_kind(kinds, "loss=less");
  add_metric_kind(kinds, "a=b=exact");
  EXPECT_EQ(metric_kind(kinds, "loss")->better, Better::kLess);
  EXPECT_TRUE(metric_kind(kinds, "a=b")->exact);
  EXPECT_THROW(add_metric_kind(kinds, "loss"), InputError);
  EXPECT_THROW(add_metric_kind(kinds, "loss=up"), InputError);
}

}  // namespace
}  // namespace howmany::reports
