// SPDX-License-Identifier: Apache-2.0
// Measures a plan: every configuration once per round, each run in a fresh bench process. One
// thread.
//
// Time budget. The first round ignores it.
// Files. All files of the folder are rewritten after each run, so an interrupted measurement keeps
//   its results.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "reports/gpus/plan.h"
#include "reports/gpus/results.h"

namespace howmany::reports {

// Seconds that a run may take beyond its timed ones. On GPUs each process loads libraries of up to
// 1.4 GB, and may have to measure algorithms.
struct RunTimeout {
  double least = 30, most = 120;
};
constexpr RunTimeout kOnCpus, kOnGpus{.least = 120, .most = 600};
// Returns the limit if `left` seconds of the time budget remain: twice `left`, within `limits`.
double timeout_within(double left, RunTimeout limits);

struct MeasureOptions {
  std::string folder;
  // Seconds beyond the timed ones. If absent, timeout_within() applies; without a time budget, the
  // most of RunTimeout.
  std::optional<double> run_timeout;
  bool verbose = false;  // forward the bench's stderr
  // Called about five times a second and after each run. Times in seconds.
  struct Progress {
    size_t done = 0, all = 0;
    std::string what;
    double elapsed = 0, left = 0;
    const BenchRun* finished = nullptr;
  };
  std::function<void(const Progress&)> on_progress;
};

// Continues from `results` and skips runs that succeeded. Throws InputError if a file of the folder
// cannot be written.
void measure(const Plan& plan, const MeasureOptions& options, Results& results);

}  // namespace howmany::reports
