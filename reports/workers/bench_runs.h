// SPDX-License-Identifier: Apache-2.0
// Runs bench programs for `howmany workers` and keeps their results. Every file of the folder is
// complete after each run. One thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/process.h"
#include "core/base/statistics.h"
#include "reports/results/bench_file.h"
#include "reports/results/scratch.h"
#include "reports/workers/bounds.h"
#include "reports/workers/command.h"

namespace howmany::reports {

struct LoaderRun {
  ProcessResult ended;
  BenchFile file;  // without rows if the bench died
  std::vector<SampleLine> samples;
  std::string problem;           // reason if the files cannot be read
  double busy_elsewhere = kNaN;  // share of the cores; NaN: unknown
  bool interrupted() const { return ended.how == ProcessResult::How::kInterrupted; }
};

// All kept results.
struct LoaderResults {
  nlohmann::json context = nlohmann::json::object();
  std::vector<BenchRow> rows;
  std::vector<SampleLine> samples;
  double busy_elsewhere = 0;  // the largest share during a kept run
};

class BenchRuns {
 public:
  using Argv = std::function<std::vector<std::string>(const BenchScratch&)>;

  BenchRuns(const WorkersArguments& arguments, std::string folder)
      : arguments_(arguments), folder_(std::move(folder)) {}

  // Throws InputError if the bench refuses its arguments.
  LoaderRun run(const Argv& argv, double timeout_seconds) const;
  // Runs loader_bench with `more` options: each of `cases` cases for `seconds`.
  LoaderRun run_loader(const std::string& data, const std::vector<std::string>& more,
                       double seconds, size_t cases) const;
  // Adds the results, and writes loader.json and loader.samples.jsonl.
  void keep(const LoaderRun& run);
  void tell(const std::string& text) const;  // on stderr, unless --quiet

  const LoaderResults& results() const { return results_; }
  const WorkersArguments& arguments() const { return arguments_; }

 private:
  const WorkersArguments& arguments_;
  const std::string folder_;
  LoaderResults results_;
};

// The machine, and the files of --data.
struct LoaderLook {
  LoaderLimits limits;
  nlohmann::json context;
};
// Loads a few batches of `data` without workers. Returns nullopt if it was interrupted. Throws
// InputError if there is nothing to load, and names the options to lower if memory does not
// suffice.
std::optional<LoaderLook> look_at(const BenchRuns& runs, const std::string& data);

}  // namespace howmany::reports
