// The canary of a gate: a benchmark that is known to be slower on the candidate's side. It is
// measured beside the others and stays in the gate's files, but is never judged among them; a gate
// that does not catch it calls nothing SAME. Values only; safe from any thread.
#pragma once

#include "reports/regression/judge.h"

namespace howmany::reports {

extern const char* const kCanary;     // its name
constexpr double kCanaryExtra = 0.2;  // more work, at least;
constexpr double kCanaryFloors = 4;   // as much as that many floors

Suite without_canary(Suite suite);
// Judged by its time alone, whatever else is asked for.
bool canary_was_caught(const Suite& base, const Suite& candidate, const JudgeOptions& options);
void mistrust(Comparison& comparison);

// As the gate whose files these are judged them; other files have no canary.
Comparison judge_without_canary(const Suite& base, const Suite& candidate,
                                const JudgeOptions& options);

}  // namespace howmany::reports
