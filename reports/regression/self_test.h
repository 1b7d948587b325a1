// `howmany gate --self-test`: what this gate is worth on this machine. Launches one program as two
// sides, and as sides that do 1, 3, 5 and 10 % more work, keeps every launch in OUT/trace.jsonl,
// and tells how often unchanged code raises an alarm and how often a slowdown is found. Goes on
// from a trace that is there. One thread.
#pragma once

#include <string>
#include <vector>

#include "reports/regression/gate.h"
#include "reports/regression/rules.h"
#include "reports/regression/trace.h"

namespace howmany::reports {

int run_self_test(const GateArguments& arguments);

// The arm that is the base over again, and those with that much more work.
extern const char* const kSameArm;
std::string slow_arm(int percent);  // "slow5"

}  // namespace howmany::reports
