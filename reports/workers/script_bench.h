// SPDX-License-Identifier: Apache-2.0
// Measures numbers of workers of PyTorch's DataLoader (script_bench): those of the user's own
// script, or of a script of ours that only loads --data. One thread.
#pragma once

#include <string>
#include <vector>

#include "reports/script/script.h"
#include "reports/workers/bench_runs.h"
#include "reports/workers/measure.h"

namespace howmany::reports {

class ScriptBench final : public WorkersBench {
 public:
  ScriptBench(BenchRuns& runs, Script script, LoaderLimits limits)
      : runs_(runs), script_(std::move(script)), limits_(std::move(limits)) {}

  // Starts the script once.
  bool measure(WorkersFacts& facts, const std::vector<int>& numbers, double seconds) override;
  double seconds_of(size_t turns) const override;

 private:
  std::vector<std::string> argv(const WorkersFacts& facts, const std::vector<int>& numbers,
                                double seconds, const BenchScratch& scratch) const;

  BenchRuns& runs_;
  const Script script_;
  const LoaderLimits limits_;
  double start_ = 0, turn_ = 0;  // seconds, in the last run
};

// The program that loads, in the results folder while it runs.
class TorchLoader {
 public:
  // Throws InputError if there is no such Python.
  TorchLoader(const WorkersArguments& arguments, const std::string& folder, double demand);
  ~TorchLoader();
  TorchLoader(const TorchLoader&) = delete;
  TorchLoader& operator=(const TorchLoader&) = delete;

  Script script(int ranks) const;

 private:
  const std::string path_;
  std::vector<std::string> words_;
};

}  // namespace howmany::reports
