// SPDX-License-Identifier: Apache-2.0
// Command line of loader_bench.
#pragma once

#include <string>
#include <vector>

#include "benches/loader/data.h"
#include "benches/loader/run.h"

namespace howmany::benches {

struct LoaderFlags {
  LoaderDataOptions data;
  LoaderRun run;
  std::vector<int> workers = {0, 1, 2};
  std::vector<int64_t> batches = {64};
  std::vector<int> prefetch = {2};
  std::string cache = "warm", samples;
  double time_budget = 0;  // seconds; 0: none
  std::vector<Device> to = {Device{}};
};

std::string name_of(WorkersAs as);  // the value of --worker-type

// Parses the command line, as parse() of program.h does.
std::vector<std::string> parse_loader(int argc, char** argv, LoaderFlags& flags);

}  // namespace howmany::benches
