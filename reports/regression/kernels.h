// SPDX-License-Identifier: Apache-2.0
// A small program with eight kernels, each shorter than a millisecond. A kernel can do a given
// share of additional work of the same kind, so that a known slowdown is real. Used as the canary
// of `gate` and by its self-test. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace howmany::reports {

struct WorkerArguments {
  std::vector<std::string> kernels;  // empty: all
  double extra = 0;                  // additional work in percent
  int repetitions = 5;
  uint64_t seed = 0;  // of the order; 0: from the time
};

std::vector<std::string> kernel_names();
// Prints Google Benchmark JSON. Throws InputError for an unknown kernel.
int run_worker(const WorkerArguments& arguments);

}  // namespace howmany::reports
