// SPDX-License-Identifier: Apache-2.0
// Collects a study: the states of its jobs, and one summary of their measurements.
//
// Speedups. Each job measures one device, too, so the speedup of a row is that within its job. Only
//   the first valid row of one device is kept; a flag on it has the spread of the others.
// States. Slurm reports them (sacct, squeue), else the files of the job.
// Thread safety. One thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/gpus/plan.h"
#include "reports/results/record.h"
#include "reports/submit/study.h"

namespace howmany::reports {

struct JobState {
  StudyJob job;
  std::string name = {};  // "PENDING", "TIMEOUT", ...: of Slurm, or of kNotSubmitted and the others
  std::string why = {};   // it failed, or its rows are left out: the reason; may be empty
  size_t rows = 0;        // measured
  bool has_ended = false;
  bool is_complete() const { return name == "COMPLETED"; }
  bool has_failed() const { return has_ended && !is_complete(); }
};

// Names of states that Slurm does not report.
constexpr const char *kNotSubmitted = "NOT_SUBMITTED",
                     *kNotInQueue = "NOT_IN_QUEUE",  // it ended, and left no exit code
                         *kUnknown = "UNKNOWN";      // Slurm does not answer

struct Collection {
  std::vector<JobState> jobs;
  Summary summary;
  std::optional<Plan> plan;  // of the largest job, with the counts of all; nullopt: no results
};

// Asks Slurm, and reads the folders of the jobs.
Collection collect(const Study& study);

}  // namespace howmany::reports
