// SPDX-License-Identifier: Apache-2.0
// Which GPUs or CPU slices a request measures. One thread.
#pragma once

#include <string>

#include "reports/gpus/command.h"
#include "reports/gpus/plan.h"
#include "reports/results/machine.h"

namespace howmany::reports {

// Returns the GPUs that Slurm gives this job on this node; 0 if there are none or this is no job.
int gpus_of_this_job();

// Sets the devices and the cores of each. Returns a sentence for the user: which GPUs are measured,
// or why cores are although GPUs are here; empty if neither. Throws InputError if a GPU of the
// request is not here or cannot be used, or if a job has GPUs and none can be used.
std::string resolve_devices(const Arguments& arguments, const Machine& machine, Request& request);

// Throws InputError if the slices of a request need more cores than are here.
void refuse_oversubscription(const Machine& machine, const Request& request);

}  // namespace howmany::reports
