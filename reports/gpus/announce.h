// SPDX-License-Identifier: Apache-2.0
// The line that a measuring run prints before it starts.
#pragma once

#include <string>

#include "reports/gpus/plan.h"

namespace howmany::reports {

// Returns what will be measured, on which devices, for how long and where the results go:
// "Measuring mlp with single and ddp on 1 and 2 CPU devices (3 configurations, 3 rounds) for up to
// 100 s."
std::string announcement(const Request& request, const std::string& folder);

}  // namespace howmany::reports
