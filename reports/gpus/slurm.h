// SPDX-License-Identifier: Apache-2.0
// Writes a Slurm job script from a summary: the recommended devices and the training command.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Uses the first model. `words` is the command of the user's own script, which the summary does not
// hold; empty: a comment takes its place. Throws InputError if there is no recommendation.
std::string slurm_script(const Summary& summary, const std::vector<Advice>& advice,
                         const AdviceOptions& options, const std::vector<std::string>& words = {});

}  // namespace howmany::reports
