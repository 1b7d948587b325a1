// Renders the parts of a step that `howmany gpus --profile` measured. Prints for each model one
// line for one device and one for the largest number of devices. Empty without profiles.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// `folder` holds the trace; if empty, the text does not name it.
std::string render_step_parts(const Summary& summary, const std::vector<Advice>& advice,
                              const std::string& folder);

}  // namespace howmany::reports
