// SPDX-License-Identifier: Apache-2.0
// Runs loader_bench once for `howmany workers`. One thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/process.h"
#include "core/base/statistics.h"
#include "reports/results/bench_file.h"
#include "reports/workers/command.h"

namespace howmany::reports {

struct LoaderRun {
  ProcessResult ended;
  BenchFile file;  // without rows if the bench died
  std::vector<SampleLine> samples;
  std::string problem;           // reason if the files cannot be read
  double busy_elsewhere = kNaN;  // share of the cores; NaN: unknown
};

// Measures each of `cases` cases for `seconds`. Throws InputError if the bench refuses its
// arguments.
LoaderRun run_loader_bench(const WorkersArguments& arguments, const std::string& folder,
                           const std::vector<std::string>& more, double seconds, size_t cases);

}  // namespace howmany::reports
