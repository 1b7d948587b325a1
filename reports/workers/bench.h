// SPDX-License-Identifier: Apache-2.0
// The bench programs behind `howmany workers`: runs them, keeps their results, and reads their
// rows. Every file of the folder is complete after each run. One thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/comm/run.h"
#include "reports/results/scratch.h"
#include "reports/workers/command.h"
#include "reports/workers/points.h"

namespace howmany::reports {

class BenchRuns {
 public:
  BenchRuns(const WorkersArguments& arguments, std::string folder)
      : arguments_(arguments), folder_(std::move(folder)) {}

  // Runs a program that writes to `scratch`. Throws InputError if it refuses its arguments.
  SuiteRun run(const std::vector<std::string>& argv, const BenchScratch& scratch,
               double timeout_seconds) const;
  // Runs loader_bench with `more` options: each of `cases` cases for `seconds`.
  SuiteRun run_loader(const std::string& data, const std::vector<std::string>& more, double seconds,
                      size_t cases) const;
  // Adds the results, and writes loader.json and loader.samples.jsonl.
  void keep(SuiteRun run);
  void tell(const std::string& text) const;  // on stderr, unless --quiet

  const std::vector<SuiteRun>& kept() const { return kept_; }
  const std::string& folder() const { return folder_; }
  const WorkersArguments& arguments() const { return arguments_; }

 private:
  const WorkersArguments& arguments_;
  const std::string folder_;
  std::vector<SuiteRun> kept_;
};

// Loads a few batches of `data` without workers, and returns the context of loader_bench. Returns
// nullopt if it was interrupted. Throws InputError if there is nothing to load, and names the
// options to lower if memory does not suffice.
std::optional<nlohmann::json> look_at(const BenchRuns& runs, const std::string& data);
// Returns the member loader_limits of that context (worker_bounds()).
nlohmann::json limits_in(const nlohmann::json& context);

double counter(const BenchRow& row, const char* name, double otherwise = 0);
// Converts a row to a measurement. The name before the first "word:" is the case; the rest are
// parameters. One row has no interval; over_rounds() adds it.
Measurement measurement_of(const BenchRow& row);
// Adds the turns of a run, and returns their numbers of workers. The rounds follow those that are
// there. Throws InputError if a row names no number, or has neither samples/s nor an error.
std::set<int> add_turns(WorkersFacts& facts, const std::vector<BenchRow>& rows);
// Adds what the rows of script_bench have in their samples: the script's own number, ranks, batch.
// Throws InputError if the files do not fit together.
void add_script(WorkersFacts& facts, const std::vector<BenchRow>& rows,
                const std::vector<SampleLine>& samples);
// Adds the number of files, of unreadable ones, and the size of a sample.
void add_files(WorkersFacts& facts, const nlohmann::json& context);

}  // namespace howmany::reports
