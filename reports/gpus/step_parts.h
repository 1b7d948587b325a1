// SPDX-License-Identifier: Apache-2.0
// Renders the parts of a step that `howmany gpus --profile` measured. Prints for each model one
// line for one device and one for the largest number of devices. Empty without profiles.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// The parts of a step. Metrics are "profile_" or "profile_gpu_" and the name.
struct StepPart {
  const char *name, *word;
};
inline constexpr StepPart kStepParts[] = {{"compute_s", "compute"},    {"optimizer_s", "optimizer"},
                                          {"comm_s", "communication"}, {"copy_s", "copies"},
                                          {"data_s", "data"},          {"host_s", "none of these"},
                                          {"idle_s", "idle"}};

// `folder` holds the trace; if empty, the text does not name it.
std::string render_step_parts(const Summary& summary, const std::vector<Advice>& advice,
                              const std::string& folder);

}  // namespace howmany::reports
