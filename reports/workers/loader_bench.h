// SPDX-License-Identifier: Apache-2.0
// Measures numbers of workers of this program's own loader (loader_bench). One thread.
#pragma once

#include <string>
#include <vector>

#include "reports/workers/bench_runs.h"
#include "reports/workers/measure.h"

namespace howmany::reports {

class LoaderBench final : public WorkersBench {
 public:
  // `has_files`: a first epoch reads them from storage.
  LoaderBench(BenchRuns& runs, const Budget& budget, bool has_files)
      : runs_(runs), budget_(budget), has_files_(has_files) {}

  bool measure(WorkersFacts& facts, const std::vector<int>& numbers, double seconds) override;
  double seconds_of(size_t turns) const override;
  double first_epoch_seconds() const override;
  void measure_first_epoch(WorkersFacts& facts, int workers) override;

 private:
  bool give_turns(WorkersFacts& facts, const std::vector<int>& order, double turn, double seconds);
  void tell_rates(const WorkersFacts& facts, const std::vector<int>& numbers) const;

  BenchRuns& runs_;
  const Budget& budget_;
  const bool has_files_;
  bool measured_ = false;
  double untimed_ = 0;  // seconds of a turn in the last run
};

}  // namespace howmany::reports
