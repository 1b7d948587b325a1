// SPDX-License-Identifier: Apache-2.0
#include "reports/regression/canary.h"

#include <algorithm>

#include "reports/regression/rules.h"

namespace howmany::reports {

const char* const kCanary = "howmany/canary";

namespace {

bool has_canary(const Suite& suite) {
  return std::ranges::any_of(suite.benchmarks,
                             [](const Benchmark& b) { return b.name == kCanary; });
}

}  // namespace

Suite without_canary(Suite suite) {
  std::erase_if(suite.benchmarks, [](const Benchmark& b) { return b.name == kCanary; });
  return suite;
}

bool canary_was_caught(const Suite& base, const Suite& candidate, const JudgeOptions& options) {
  JudgeOptions time_alone = options;
  time_alone.metrics.clear();
  time_alone.kinds.clear();
  const Comparison c = judge(only(base, {kCanary}), only(candidate, {kCanary}), time_alone);
  return c.count(Verdict::kSlower) == 1;
}

void mistrust(Comparison& comparison) {
  for (Row& row : comparison.rows) {
    if (row.verdict != Verdict::kSame || row.kind.exact) continue;
    row.verdict = Verdict::kInconclusive;
    row.why = "the canary was not caught: this gate cannot see a slowdown now";
  }
}

Comparison judge_without_canary(const Suite& base, const Suite& candidate,
                                const JudgeOptions& options) {
  Comparison c = judge(without_canary(base), without_canary(candidate), options);
  if (!c.paired || !has_canary(base) || !has_canary(candidate)) return c;
  // The canary's slowdown was made for the gate's floor, which may differ from this one.
  JudgeOptions least = options;
  least.min_effect =
      std::min(options.min_effect.value_or(kPairedEffect), kCanaryExtra / kCanaryFloors);
  if (!canary_was_caught(base, candidate, least)) mistrust(c);
  return c;
}

}  // namespace howmany::reports
