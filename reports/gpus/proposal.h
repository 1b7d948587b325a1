// SPDX-License-Identifier: Apache-2.0
// Writes the scaling section of a proposal for computing time, in Markdown: curves with their
// intervals, the commands and the versions.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// A part for each run, such as one of weak and one of strong scaling. Measured, rehearsed and
// predicted rows are in tables of their own. Only the name of the user's own script is shown,
// because the arguments of its command may hold secrets. Throws InputError if a run is not of
// `howmany gpus`, or holds no measurement of it.
std::string proposal(const std::vector<Summary>& runs, const AdviceOptions& options);

}  // namespace howmany::reports
