// SPDX-License-Identifier: Apache-2.0
// The scaling section of a proposal as one HTML page: proposal.h with the charts of each run. As
// report.html, it has no script and fetches nothing, and escapes all text. Values only; not tied to
// any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Throws InputError as proposal() does.
std::string proposal_page(const std::vector<Summary>& runs, const AdviceOptions& options);

}  // namespace howmany::reports
