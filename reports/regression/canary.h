// SPDX-License-Identifier: Apache-2.0
// The canary of a gate: a benchmark that is slower on the candidate's side by design. It is
// measured with the others and stays in the gate's files, but is not judged among them. If a gate
// does not detect it, only exact metrics can be SAME. Values only; safe from any thread.
#pragma once

#include "reports/regression/judge.h"

namespace howmany::reports {

extern const char* const kCanary;     // name of the canary
constexpr double kCanaryExtra = 0.2;  // minimum share of additional work
constexpr double kCanaryFloors = 4;   // and at least this many times the floor

Suite without_canary(Suite suite);
// True if its time is judged SLOWER. Ignores the other requested metrics.
bool canary_was_caught(const Suite& base, const Suite& candidate, const JudgeOptions& options);
void mistrust(Comparison& comparison);

// Judges the files of a gate as that gate did. Other files have no canary.
Comparison judge_without_canary(const Suite& base, const Suite& candidate,
                                const JudgeOptions& options);

}  // namespace howmany::reports
