// SPDX-License-Identifier: Apache-2.0
// Writes a Slurm job script from a summary: the recommended devices and the training command.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"
#include "reports/script/script.h"

namespace howmany::reports {

// Uses the first model. `script` has the words of the user's own script, which the summary does not
// hold; empty: a comment takes their place. Throws InputError if there is no recommendation.
std::string slurm_script(const Summary& summary, const std::vector<Advice>& advice,
                         const AdviceOptions& options, const Script& script = {});

}  // namespace howmany::reports
