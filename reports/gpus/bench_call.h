// SPDX-License-Identifier: Apache-2.0
// The command line of the bench that measures a configuration. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/plan.h"
#include "reports/results/scratch.h"

namespace howmany::reports {

// Returns the program and the arguments that select the configuration. Duration and output files
// are added later.
std::vector<std::string> bench_arguments(const Request& request,
                                         const Configuration& configuration);

// Returns the flag that makes a bench rehearse `world` ranks on the cluster of the request. Writes
// the cost table to a file of `scratch`.
std::vector<std::string> rehearse_flag(const Request& request, int world,
                                       const BenchScratch& scratch);
// Returns the number of ranks that run in a rehearsal of `world` ranks: one for each device that is
// measured.
int rehearsing_ranks(const Request& request, int world);

// Returns the command line of script_bench for a run on the first devices of the configuration.
std::vector<std::string> script_arguments(const Request& request, const Configuration& c,
                                          double seconds, double timeout,
                                          const BenchScratch& scratch);

// Returns the command line of script_bench for a rehearsal of `world` ranks, of which as many run
// as devices are measured. Writes the cost table to a file of `scratch`.
std::vector<std::string> rehearsal_arguments(const Request& request, int world, double seconds,
                                             double timeout, const BenchScratch& scratch);

// Runs the bench's checks for every mode and backend at the largest number of devices, without
// measuring. Throws InputError with the bench's message if it refuses one.
void check_with_bench(const Request& request);
// Removes the modes that the bench refuses, such as one that cannot divide the model, and returns
// why: "tensor: the model has ...".
std::vector<std::string> leave_out_refused(Request& request);

}  // namespace howmany::reports
