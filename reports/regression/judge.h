// SPDX-License-Identifier: Apache-2.0
// Judges two suites: returns a verdict for every benchmark and metric. Compares each metric with a
// better direction on log ratios.
//
// Test. Signed rank if the sides were interleaved (paired), else rank sum.
// Significance. A change counts if it surely exceeds the floor after Holm's correction over the
//   suite.
// Exact metrics. Compared exactly.
// Thread safety. Values only; safe from any thread.
//
//   Comparison c = judge(read_suite("a.json"), read_suite("b.json"), {});
//   for (const Row& row : c.rows) ...   // row.verdict == Verdict::kSlower
//   return exit_code(c, strict);
#pragma once

#include "reports/regression/suite.h"
#include "reports/regression/verdict.h"

namespace howmany::reports {

Comparison judge(const Suite& base, const Suite& candidate, const JudgeOptions& options);
// Throws InputError naming --metric if no benchmark of either side has a requested metric.
void refuse_unknown_metrics(const Suite& base, const Suite& candidate, const JudgeOptions& options);

}  // namespace howmany::reports
