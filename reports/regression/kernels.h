// A small program to measure with: eight kernels of less than a millisecond that can do a
// given share of extra work, the very same work, so that a known slowdown is real and not an edited
// number. The canary of `gate` and the workload of its self-test. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace howmany::reports {

struct WorkerArguments {
  std::vector<std::string> kernels;  // none: all
  double extra = 0;                  // percent of more work
  int repetitions = 5;
  uint64_t seed = 0;  // of their order; 0: by the time
};

std::vector<std::string> kernel_names();
// Prints Google Benchmark JSON. Throws InputError for an unknown kernel.
int run_worker(const WorkerArguments& arguments);

}  // namespace howmany::reports
