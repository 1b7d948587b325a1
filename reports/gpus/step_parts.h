// Where a step goes, as `howmany gpus --profile` measured it: a line for one device and one for the
// largest number of them, for each model. Nothing for a summary without profiles.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// `folder` holds the trace; empty: not told where.
std::string render_step_parts(const Summary& summary, const std::vector<Advice>& advice,
                              const std::string& folder);

}  // namespace howmany::reports
