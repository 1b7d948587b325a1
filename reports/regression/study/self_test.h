// SPDX-License-Identifier: Apache-2.0
// `howmany gate --self-test` measures the quality of this gate on this machine. It launches one
// program as two equal sides, and as sides with 1, 3, 5 and 10 % more work. It reports how often
// unchanged code raises an alarm and how often a slowdown is found. Every launch is kept in
// OUT/trace.jsonl; an existing trace is continued. One thread.
#pragma once

#include <string>
#include <vector>

#include "reports/regression/gate.h"
#include "reports/regression/rules.h"
#include "reports/regression/trace.h"

namespace howmany::reports {

int run_self_test(const GateArguments& arguments);

// The arm that equals the base, and those with additional work.
extern const char* const kSameArm;
std::string slow_arm(int percent);  // "slow5"

}  // namespace howmany::reports
