// SPDX-License-Identifier: Apache-2.0
// Measures for the commands `gpus` and `run`. reports/cli/report.h prints the answer.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/gpus/advise.h"
#include "reports/gpus/beyond.h"
#include "reports/gpus/plan.h"

namespace howmany::reports {

// The part of a command line that decides from measurements and prints. Absent members keep the
// values of an earlier answer.
struct AnswerArguments {
  std::optional<double> min_efficiency, samples;
  std::string emit;  // "slurm", "proposal" or "proposal=FORM[:latex]": prints only that
  bool json = false;
};

// The parsed command line. Absent members take their default from the preset, the machine or the
// resumed plan.
struct Arguments : AnswerArguments {
  std::vector<std::string> models, modes, backends, devices;
  std::optional<int64_t> batch_per_device, global_batch;
  std::optional<int> cores_per_device, workers, rounds;
  std::optional<std::string> preset;
  std::map<std::string, std::optional<std::string>> forwarded;  // option name -> value
  std::optional<double> time_budget;
  std::optional<int64_t> seed;
  bool oversubscribe = false, sync_batchnorm = false, profile = false;
  std::vector<std::string> command;  // after "--": the user's own
  std::optional<int64_t> samples_per_step;
  std::string rate;
  bool keep_private = false, in_copy = false;
  bool try_ddp = false, tries = false;
  std::vector<int> nodes, counts;               // of whole nodes; of devices
  std::string hosts;                            // a file
  std::optional<int> up_to;                     // devices; more than there are
  std::string cluster;                          // a name or a file
  std::optional<double> finish_within, budget;  // of these: hours, device-hours

  std::string submit;  // words of sbatch
  bool one_job = false, dry_run = false;
  std::vector<std::string> options;  // as typed, of the jobs that are submitted

  std::string out, resume;
  std::optional<double> run_timeout, start_timeout;
  bool quiet = false, verbose = false;
};

// Writes the files of a summary into a folder.
using SummaryWriter = std::function<void(const std::string& folder, const Summary& summary)>;

struct GpusRun {
  Summary summary;
  std::string folder;  // empty if it was interrupted before anything was measured
  int exit_code = 0;
};

// Measures a new run, or continues one. Calls `write` after each measurement and at the end. Throws
// InputError for bad usage or input, and std::runtime_error if results cannot be written.
GpusRun run_gpus(const Arguments& arguments, const SummaryWriter& write);

// Returns the member `gpus` of the summary's answer.
nlohmann::ordered_json gpus_answer(const std::vector<Measurement>& measurements,
                                   const AdviceOptions& options);

// Returns `options` with the values of the command line.
AdviceOptions advice_options(const AnswerArguments& arguments, AdviceOptions options = {});

// Returns the user's own script with its words, which only plan.json of `folder` holds. Empty if
// there is none.
Script script_of(const std::string& folder);

}  // namespace howmany::reports
