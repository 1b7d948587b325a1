// SPDX-License-Identifier: Apache-2.0
// The job scripts of a study, for Slurm, and their cost. The words of sbatch are those after
// --submit. Values only; not tied to any thread.
#pragma once

#include <optional>
#include <string>

#include "reports/submit/study.h"

namespace howmany::reports {

// Splits the value of --submit. Throws InputError if it does not start sbatch, or has a word that a
// study sets itself or cannot have: the number of nodes, an array, another script or cluster.
Words sbatch_words(const std::string& text);

// Returns the seconds of a time limit of Slurm, such as "15", "1:30:00" or "2-12". Returns nullopt
// for other text and for no limit.
std::optional<double> slurm_seconds(const std::string& text);

// The most that a job uses: its nodes, or its GPUs, over its whole time limit.
struct JobCost {
  std::optional<double> seconds;  // the time limit; nullopt if the words have none
  std::optional<double> node_hours, device_hours;
};
JobCost cost_of(const Words& submit, int nodes);

// Returns the text of the script. The measurement ends before the time limit. Results of an earlier
// start of the job, such as one that was preempted, are moved away. Throws InputError if the path
// of the study has control characters.
std::string job_script(const Study& study, const StudyJob& job);

}  // namespace howmany::reports
