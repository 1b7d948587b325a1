// SPDX-License-Identifier: Apache-2.0
// The gradient buckets of the user's own script (howmany backend -- COMMAND).
#pragma once

#include <string>

#include "reports/script/script.h"

namespace howmany::reports {

// Rehearses the script on `device` as one of two ranks (torch_hook/rehearsal.py), with collectives
// that take no time. Returns its buckets for --model of backend_bench: "train.py=1048576,4194304".
// Files go to `folder`. Throws std::runtime_error with the reason if no step was measured, and
// InputError if the script sends no buckets.
std::string script_buckets(const Script& script, const std::string& device,
                           const std::string& folder);

}  // namespace howmany::reports
