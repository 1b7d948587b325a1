// The subcommands of `howmany`: what each was told on the command line and what it does with it.
// Results on stdout, everything else on stderr. Each returns the exit code of DESIGN: 0 fine, 2 bad
// usage or input (thrown as InputError), 3 a measurement failed or was interrupted.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/gpus/plan.h"

namespace howmany::reports {

constexpr int kFine = 0, kUsage = 2, kMeasurementFailed = 3;

// What was given; absent members take their default from the preset, the machine or the resumed
// plan.
struct Arguments {
  std::vector<std::string> models, modes, backends, devices;
  std::optional<int64_t> batch_per_device, global_batch;
  std::optional<int> cores_per_device, workers, rounds;
  std::optional<std::string> preset;
  std::map<std::string, std::optional<std::string>> passed;  // by their names
  std::optional<double> time_budget, min_efficiency;
  std::optional<int64_t> seed;
  std::optional<std::string> samples;  // a count, "1.28M"
  bool oversubscribe = false, sync_batchnorm = false, profile = false;

  std::string out, resume, path;
  std::string emit;  // "slurm": a job script on stdout, nothing else there
  std::optional<double> run_timeout;
  bool json = false, quiet = false, no_color = false, verbose = false;
};

// `gpus`, and `run` when a preset is given.
int run_gpus(const Arguments& arguments);
int run_report(const Arguments& arguments);

}  // namespace howmany::reports
