// SPDX-License-Identifier: Apache-2.0
// Writes a Slurm job script from a summary: the recommended devices and the training command.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Uses the first model. Throws InputError if there is no recommendation.
std::string slurm_script(const Summary& summary, const std::vector<Advice>& advice,
                         const AdviceOptions& options);

}  // namespace howmany::reports
