// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/study/replay.h"

#include <algorithm>
#include <array>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <random>
#include <set>
#include <span>

#include "reports/regression/ranks.h"
#include "reports/regression/trace.h"

namespace howmany::reports {
namespace {

std::vector<int64_t> blocks_in(const Suite& suite) {
  std::set<int64_t> blocks;
  for (const Benchmark& benchmark : suite.benchmarks) {
    const auto times = benchmark.metrics.find("real_time");
    if (times == benchmark.metrics.end()) continue;
    for (const Sample& sample : times->second) blocks.insert(sample.index);
  }
  return {blocks.begin(), blocks.end()};
}

// Returns the blocks that both sides have.
std::vector<int64_t> common_blocks(const Suite& a, const Suite& b) {
  const std::vector<int64_t> x = blocks_in(a), y = blocks_in(b);
  std::vector<int64_t> both;
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
  return both;
}

// Blocks [first, first + count) of the common ones, as suites.
struct Windows {
  const Suite &base, &candidate;
  std::vector<int64_t> blocks = common_blocks(base, candidate);

  bool has(size_t first, int count) const {
    return first + static_cast<size_t>(count) <= blocks.size();
  }
  Suite part(const Suite& suite, size_t first, int count) const {
    return blocks_of(suite, blocks[first], blocks[first + static_cast<size_t>(count) - 1] + 1);
  }
  Comparison judged(size_t first, int count, const JudgeOptions& options,
                    const std::vector<std::string>& names = {}) const {
    return judge(only(part(base, first, count), names), only(part(candidate, first, count), names),
                 options);
  }
};

std::vector<double> times_of(const Benchmark& benchmark) {
  std::vector<double> times;
  const auto found = benchmark.metrics.find("real_time");
  if (found == benchmark.metrics.end()) return times;
  for (const Sample& sample : found->second) times.push_back(sample.value);
  return times;
}

// The two-sided Mann-Whitney test of compare.py and benchstat, at their level of 0.05.
bool mann_whitney(std::span<const double> base, std::span<const double> candidate) {
  return 2 * rank_sum_above(base, candidate, 0) < 0.05;
}

double welch_t(std::span<const double> a, std::span<const double> b) {
  const auto variance = [](std::span<const double> x) {
    const double cv = coefficient_of_variation(x), m = mean(x);
    return cv * cv * m * m / static_cast<double>(x.size());
  };
  return (mean(b) - mean(a)) / std::sqrt(variance(a) + variance(b));
}

// criterion.rs: a bootstrapped t-test at 0.05, and the bootstrapped interval of the mean's change
// beyond a noise threshold of 1 %. It draws 100,000 times; 1,000 are sufficient here.
bool criterion(std::span<const double> base, std::span<const double> candidate) {
  constexpr int kDraws = 1000;
  std::mt19937_64 random(1);
  const auto draw = [&](std::span<const double> from, size_t n) {
    std::vector<double> drawn(n);
    for (double& value : drawn) value = from[random() % from.size()];
    return drawn;
  };
  std::vector<double> pooled(base.begin(), base.end());
  pooled.insert(pooled.end(), candidate.begin(), candidate.end());
  const double t = std::abs(welch_t(base, candidate));
  int beyond = 0;
  std::vector<double> changes;
  for (int i = 0; i < kDraws; ++i) {
    beyond += std::abs(welch_t(draw(pooled, base.size()), draw(pooled, candidate.size()))) >= t;
    const double now = mean(draw(candidate, candidate.size()));
    changes.push_back(now / mean(draw(base, base.size())) - 1);
    if (!std::isfinite(changes.back())) return false;
  }
  return beyond < 0.05 * kDraws && quantile(changes, 0.025) > 0.01;
}

// Compares the last run with the previous one, as most trackers do.
bool ten_percent(std::span<const double> base, std::span<const double> candidate) {
  return candidate.front() > 1.1 * base.front();
}

struct Method {
  const char* name;
  bool (*slower)(std::span<const double>, std::span<const double>);
};
constexpr std::array kMethods = {
    Method{"compare.py, benchstat: Mann-Whitney p < 0.05", mann_whitney},
    Method{"criterion: bootstrap p < 0.05, change > 1 %", criterion},
    Method{"trackers: one run > 10 % above the one before", ten_percent}};

// Compares within the clock resolution, which is 10 ns on virtual machines.
bool holds(const Row& row, double truth) {
  constexpr double kClockSeconds = 10e-9;
  const double blur = row.base ? kClockSeconds / *row.base : 0;
  return row.interval->low - blur <= truth && truth <= row.interval->high + blur;
}

}  // namespace

Interval interval_of(const Share& share) {
  using Binomial = boost::math::binomial_distribution<double>;
  if (share.of == 0) return {0, 1};
  const auto hits = static_cast<double>(share.hits), of = static_cast<double>(share.of);
  const double tail = (1 - kConfidence) / 2;
  return {Binomial::find_lower_bound_on_p(of, hits, tail),
          Binomial::find_upper_bound_on_p(of, hits, tail)};
}

GateTally replay_gates(const Suite& base, const Suite& candidate, const GateRules& rules) {
  const Windows windows{base, candidate};
  GateTally tally;
  for (size_t at = 0; windows.has(at, rules.screen + rules.pairs);) {
    Comparison verdict = windows.judged(at, rules.screen, rules.judge);
    at += static_cast<size_t>(rules.screen);
    const std::vector<std::string> open = to_escalate(verdict);
    if (!open.empty()) {
      verdict = settled(verdict, windows.judged(at, rules.pairs, rules.judge, open));
      at += static_cast<size_t>(rules.pairs);
    }
    tally.alarms.add(verdict.count(Verdict::kSlower) > 0);
    tally.gains.add(verdict.count(Verdict::kFaster) > 0);
    for (const Row& row : verdict.rows)
      tally.inconclusive.add(row.verdict == Verdict::kInconclusive);
  }
  return tally;
}

WindowTally replay_windows(const Suite& base, const Suite& candidate, int pairs,
                           const JudgeOptions& options, double truth) {
  const Windows windows{base, candidate};
  WindowTally tally;
  for (size_t at = 0; windows.has(at, pairs); at += static_cast<size_t>(pairs)) {
    const Comparison c = windows.judged(at, pairs, options);
    tally.alarms.add(c.count(Verdict::kSlower) > 0);
    for (const Row& row : c.rows) {
      tally.slower.add(row.verdict == Verdict::kSlower);
      tally.slower_each[row.benchmark].add(row.verdict == Verdict::kSlower);
      tally.faster.add(row.verdict == Verdict::kFaster);
      if (row.interval) tally.covered.add(holds(row, truth));
      if (row.change) tally.shifts[row.benchmark].push_back(std::abs(std::log1p(*row.change)));
    }
  }
  return tally;
}

std::vector<MethodTally> replay_others(const Suite& base, const Suite& candidate, int n,
                                       bool in_turns) {
  const Windows windows{base, candidate};
  std::vector<MethodTally> tallies;
  for (const Method& method : kMethods) {
    MethodTally& tally = tallies.emplace_back();
    tally.method = method.name;
    const int span = in_turns ? n : 2 * n;
    for (size_t at = 0; windows.has(at, span); at += static_cast<size_t>(span)) {
      const size_t later = in_turns ? at : at + static_cast<size_t>(n);
      const Suite a = windows.part(base, at, n), b = windows.part(candidate, later, n);
      bool any = false;
      for (size_t i = 0; i < a.benchmarks.size() && i < b.benchmarks.size(); ++i) {
        const std::vector<double> x = times_of(a.benchmarks[i]), y = times_of(b.benchmarks[i]);
        if (x.size() < 2 || y.size() < 2 || a.benchmarks[i].name != b.benchmarks[i].name) continue;
        const bool slower = method.slower(x, y);
        tally.slower.add(slower);
        any |= slower;
      }
      tally.alarms.add(any);
    }
  }
  return tallies;
}

}  // namespace howmany::reports
