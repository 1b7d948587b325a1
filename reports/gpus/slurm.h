// A Slurm job script for what a summary recommends: the devices to ask for and the training command
// that uses them. Pure function of the summary and the advice.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Of the first model. Throws InputError when there is no recommendation.
std::string slurm_script(const Summary& summary, const std::vector<Advice>& advice,
                         const AdviceOptions& options);

}  // namespace howmany::reports
