// SPDX-License-Identifier: Apache-2.0
// `howmany gpus --submit`, and `howmany gpus --resume` for the folder of a study. Nothing is
// measured here: the only programs that start are those of Slurm. One thread.
#pragma once

#include <string>

#include "reports/gpus/command.h"

namespace howmany::reports {

// True for --submit, and for --resume with the folder of a study.
bool is_of_study(const Arguments& arguments);

struct StudyRun {
  std::string folder;  // with the answer, for `howmany report`; empty: no answer yet
  int exit_code = 0;
};

// Submits the jobs of a new study, submits again those that failed, or collects the results, and
// writes it. Throws InputError for bad usage or input, and std::runtime_error if sbatch fails.
StudyRun run_study(const Arguments& arguments, const SummaryWriter& write);

}  // namespace howmany::reports
