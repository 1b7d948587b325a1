// SPDX-License-Identifier: Apache-2.0
// The subcommands `gpus`, `run` and `report`. Results go to stdout, everything else to stderr. Each
// returns an exit code: 0 success, 3 if a measurement failed or was interrupted. Throws InputError
// (exit code 2) for bad usage or input.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/gpus/plan.h"

namespace howmany::reports {

// The parsed command line. Absent members take their default from the preset, the machine or the
// resumed plan.
struct Arguments {
  std::vector<std::string> models, modes, backends, devices;
  std::optional<int64_t> batch_per_device, global_batch;
  std::optional<int> cores_per_device, workers, rounds;
  std::optional<std::string> preset;
  std::map<std::string, std::optional<std::string>> passed;  // option name -> value
  std::optional<double> time_budget, min_efficiency;
  std::optional<int64_t> seed;
  std::optional<double> samples;
  bool oversubscribe = false, sync_batchnorm = false, profile = false;
  std::vector<std::string> command;  // after "--": the user's own
  std::optional<int64_t> samples_per_step;
  std::string rate;
  bool keep_private = false, in_copy = false;
  bool try_ddp = false;
  std::optional<int> up_to;                     // devices; more than there are
  std::string cluster;                          // a name or a file
  std::optional<double> finish_within, budget;  // of these: hours, device-hours

  std::string out, resume;
  std::vector<std::string> paths;  // of `report`
  std::string html;                // of `report`: a page for all paths
  std::string emit;                // "slurm": prints only a job script
  std::optional<double> run_timeout;
  bool yes = false;  // measure on a login node too
  bool json = false, quiet = false, no_color = false, verbose = false;
};

// Runs `gpus`, or `run` if a preset is given.
int run_gpus(const Arguments& arguments);
int run_report(const Arguments& arguments);

}  // namespace howmany::reports
