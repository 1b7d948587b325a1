// The judgement: two suites in, a verdict for every benchmark and metric out. Values only; safe
// from any thread.
//
//   Comparison c = judge(read_suite("a.json"), read_suite("b.json"), {});
//   for (const Row& row : c.rows) ...   // row.verdict == Verdict::kSlower
//   return exit_code(c, strict);
//
// Each metric that can be better or worse is compared on log ratios, by the signed rank where the
// two sides were measured in turns (paired) and by the rank sum otherwise; a change counts when it
// is surely larger than the floor, after Holm's correction over the whole suite. Exact metrics are
// compared exactly.
#pragma once

#include "reports/regression/suite.h"
#include "reports/regression/verdict.h"

namespace howmany::reports {

Comparison judge(const Suite& base, const Suite& candidate, const JudgeOptions& options);
// Throws InputError naming --metric for one that no benchmark of either side has.
void refuse_unknown_metrics(const Suite& base, const Suite& candidate, const JudgeOptions& options);

}  // namespace howmany::reports
