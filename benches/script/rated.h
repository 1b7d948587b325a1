// SPDX-License-Identifier: Apache-2.0
// Measures a command by the rate that it prints (rate.h), without the hook.
#pragma once

#include "benches/script/command.h"
#include "benches/script/ranks.h"

namespace howmany::benches {

// Throws std::invalid_argument if the pattern of the command is bad, or does not go together with
// `samples_per_step`: a rate per second needs none, and seconds per step need it.
void check_rate(const ScriptCommand& command);

// Runs the command until it has printed enough lines, and ends it. `seconds` of the result are
// those of a sample, and `global_batch` is 0, if it prints samples per second. Throws Error with
// the reason if too few lines matched.
ScriptSteps run_rated(const ScriptCommand& command, double timeout_seconds);

}  // namespace howmany::benches
