// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/history.h"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "reports/regression/history_command.h"
#include "reports/results/record.h"

namespace howmany::reports {
namespace {

using Status = Finding::Status;

// Returns `n` points around level(i) with `noise`, and correlation `r` between neighbours.
Series series(int n, uint64_t seed, double r, const std::function<double(int)>& level,
              double noise = 0.03) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise * std::sqrt(1 - r * r));
  Series s{"b", "real_time", {}};
  double error = 0;
  for (int i = 0; i < n; ++i) {
    error = r * error + normal(random);
    s.points.push_back({"c" + std::to_string(i), "", std::exp(error) * level(i)});
  }
  return s;
}

double flat_level(int) { return 1; }

std::vector<Series> history(const std::string& text) { return series_of({{"h", text}}); }

// Returns how many of 40 draws of a series have a step within 3 points of each of `cuts`.
int found_of_40(int n, const std::vector<int>& cuts, const std::function<double(int)>& level,
                double noise) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Finding f = analyse(series(n, seed, 0, level, noise), {});
    const auto has = [&](int cut) {
      return std::ranges::any_of(f.steps, [&](const LevelChange& step) {
        return static_cast<int>(step.last_good) < cut + 3 &&
               static_cast<int>(step.first_bad) >= cut - 3;
      });
    };
    found += f.status == Status::kStep && f.steps.size() == cuts.size() &&
             std::ranges::all_of(cuts, has);
  }
  return found;
}

TEST(History, FindsAStepAndItsCommits) {
  const auto step = [](int i) { return i < 40 ? 1.0 : 1.05; };
  int found = 0, held = 0, near = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Finding f = analyse(series(80, seed, 0, step, 0.02), {});
    if (f.status != Status::kStep || f.steps.size() != 1) continue;
    ++found;
    held += f.steps[0].last_good < 40 && f.steps[0].first_bad >= 40;
    near += f.steps[0].first_bad - f.steps[0].last_good <= 8;
    EXPECT_NEAR(f.steps[0].change, 0.05, 0.02);
  }
  EXPECT_GE(found, 37);
  EXPECT_GE(held, 0.92 * found);
  EXPECT_GE(near, 0.9 * found);
}

TEST(History, FindsNothingIfNothingChanged) {
  for (const double r : {0.0, 0.6}) {
    int false_steps = 0;
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      false_steps += static_cast<int>(analyse(series(200, seed, r, flat_level), {}).steps.size());
    }
    EXPECT_LE(false_steps, 10) << r;  // of 10,000 commits: 1 in 1,000
  }
}

TEST(History, FindsARegressionThatWasFixed) {
  const auto bump = [](int i) { return i >= 40 && i < 50 ? 1.06 : 1.0; };
  EXPECT_GE(found_of_40(90, {40, 50}, bump, 0.01), 38);
  const auto opposite = [](int i) { return i >= 20 && i < 70 ? 1.04 : 1.0; };
  EXPECT_GE(found_of_40(90, {20, 70}, opposite, 0.01), 38);
}

TEST(History, FindsUpDownUp) {
  const auto level = [](int i) { return i / 25 % 2 == 0 ? 1.0 : 1.05; };
  EXPECT_GE(found_of_40(100, {25, 50, 75}, level, 0.01), 38);
}

TEST(History, FindsAStepInTheLastPoints) {
  for (const int last : {3, 4, 5}) {
    const auto level = [&](int i) { return i >= 80 - last ? 1.2 : 1.0; };
    EXPECT_GE(found_of_40(80, {80 - last}, level, 0.01), 39) << last;
  }
}

TEST(History, IgnoresOutliers) {
  int false_steps = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Series s = series(100, seed, 0, flat_level, 0.01);
    for (size_t i = seed % 11; i < s.points.size(); i += 17) s.points[i].ratio *= 1.12;
    false_steps += static_cast<int>(analyse(s, {}).steps.size());
  }
  EXPECT_LE(false_steps, 2);
}

TEST(History, DistinguishesDriftFromAStep) {
  const Finding f = analyse(series(
                                120, 3, 0, [](int i) { return 1 + 0.001 * i; }, 0.01),
                            {});
  EXPECT_EQ(f.status, Status::kDrift);
  EXPECT_NEAR(f.drift, 0.12, 0.02);
  const auto step = [](int i) { return i < 60 ? 1.0 : 1.1; };
  EXPECT_EQ(analyse(series(120, 3, 0, step, 0.01), {}).status, Status::kStep);
}

TEST(History, DistinguishesFlappingFromSteps) {
  const auto slowly = [](int i) { return i / 20 % 2 == 0 ? 1.0 : 1.1; };
  EXPECT_EQ(analyse(series(100, 4, 0, slowly, 0.01), {}).status, Status::kFlapping);
  const auto fast = [](int i) { return i * 7 % 3 == 0 ? 1.0 : 1.13; };
  EXPECT_EQ(analyse(series(60, 5, 0, fast, 0.005), {}).status, Status::kFlapping);
}

TEST(History, ReportsTheLevelAndSeriesThatAreTooShort) {
  const Finding f = analyse(series(5, 1, 0, flat_level), {});
  EXPECT_EQ(f.status, Status::kTooShort);
  EXPECT_EQ(analyse({"b", "m", {}}, {}).steps.size(), 0u);
  EXPECT_NEAR(analyse(series(
                          80, 2, 0, [](int i) { return i < 40 ? 1.0 : 1.2; }, 0.01),
                      {})
                  .level,
              1.2, 0.02);
}

TEST(History, FindsAStepInAMillionPoints) {
  const auto step = [](int i) { return i < 600000 ? 1.0 : 1.1; };
  const Finding f = analyse(series(1000000, 6, 0, step), {});
  EXPECT_EQ(f.status, Status::kStep);
  ASSERT_EQ(f.steps.size(), 1u);
  EXPECT_NEAR(static_cast<double>(f.steps[0].first_bad), 600000, 10);
}

TEST(History, SortsSeriesByNameAndPointsByDate) {
  const auto line = [](const char* name, const char* date) {
    return fmt::format(
        R"({{"commit": "{1}", "date": "{1}", "benchmark": "{0}", "metric": "m", "ratio": 1}})"
        "\n",
        name, date);
  };
  const std::vector<Series> all =
      series_of({{"x", line("b", "2") + line("a", "3")}, {"y", line("b", "1")}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].benchmark, "a");
  EXPECT_EQ(all[1].points[0].date, "1");
}

TEST(History, ReadsLinesWithFurtherKeys) {
  const auto all = history(
      R"({"note": {"a": [1]}, "commit": "a", "date": "1", "benchmark": "x", "metric": "m", )"
      R"("ratio": 2, "low": 1.9, "high": 2.1})");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].points[0].ratio, 2);
}

TEST(History, RefusesLinesThatAreNoPoints) {
  const auto all = history(
      R"({"commit": "a", "date": "1", "benchmark": "x", "metric": "real_time", "ratio": 1.5})"
      "\n\n"
      R"({"commit": "b", "date": "2", "benchmark": "x", "metric": "real_time", "ratio": 1.25})"
      "\n");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].points[1].ratio, 1.25);
  for (
      const char* bad :
      {"{", "{}", "[]", "1", R"("a")",
       R"({"commit": "a", "commit": "b", "date": "1", "benchmark": "x", "metric": "m", "ratio": 1})",
       R"({"commit": 1, "date": "1", "benchmark": "x", "metric": "m", "ratio": 1})",
       R"({"commit": "a", "date": "1", "benchmark": "x", "metric": "m", "ratio": 1} {})",
       R"({"commit": "a", "date": "1", "benchmark": "x", "metric": "m", "ratio": 0})",
       R"({"commit": "a", "date": "1", "benchmark": "x", "metric": "m", "ratio": null})"}) {
    EXPECT_THROW(history(bad), InputError) << bad;
  }
}

}  // namespace
}  // namespace howmany::reports
