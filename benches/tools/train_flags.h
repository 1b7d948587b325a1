// SPDX-License-Identifier: Apache-2.0
// Command line of howmany-train.
#pragma once

#include <string>

#include "benches/common/workload.h"

namespace howmany::benches {

struct TrainFlags {
  Workload work;
  std::string devices;
  int epochs = 2;
  bool json = false, quiet = false;  // quiet: no progress on stderr
};

// Parses the command line into `flags`. Throws std::invalid_argument if a flag is bad, and
// CLI::Success after --help. Call it within run_program().
void parse_train(int argc, char** argv, TrainFlags& flags);

}  // namespace howmany::benches
