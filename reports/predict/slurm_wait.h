// SPDX-License-Identifier: Apache-2.0
// Slurm's guess of when a job of each size would start: sbatch --test-only, which queues nothing.
// The environment of sbatch applies (SBATCH_ACCOUNT, SBATCH_PARTITION, ...). Call it from one
// thread.
#pragma once

#include <optional>
#include <string>

#include "reports/predict/forecast.h"

namespace howmany::reports {

struct SlurmAnswer {
  std::optional<double> wait_hours;  // from now; 0 if it would start at once
  std::string refused;               // Slurm's reason if there is no start
};

// Parses the last line that sbatch --test-only writes to stderr. `now` is in seconds since the
// epoch; Slurm's times are local.
SlurmAnswer slurm_answer(const std::string& line, double now);

// Throws InputError if `options` has no samples, or there is no sbatch in PATH.
void check_slurm_wait(const ForecastOptions& options);

// Asks for every offer that is not refused, with a time limit of 1.5 times the longest that the
// training may take, and decides again. Throws InputError as check_slurm_wait() does.
void ask_slurm(Forecast& f);

}  // namespace howmany::reports
