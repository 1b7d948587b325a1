// SPDX-License-Identifier: Apache-2.0
// Writes the scaling section of a proposal for computing time: rows with their intervals, the
// commands and the versions. Markdown.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/document.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Returns the part of a run, such as one of weak scaling. Measured rows are in one table, rehearsed
// and predicted ones in another. Only the name of the user's own script is shown, because the
// arguments of its command may hold secrets. Throws InputError if the run is not of `howmany gpus`,
// or holds no measurement of it.
Document proposal_of(const Summary& run, const AdviceOptions& options);
// Returns versions, rounds and commands of the run.
Document method_of(const Summary& run);
// Returns "weak scaling", "strong scaling" or "scaling".
std::string scaling_of(const Summary& run, const std::string& model);
// Returns the parts of all runs in Markdown.
std::string proposal(const std::vector<Summary>& runs, const AdviceOptions& options);

}  // namespace howmany::reports
