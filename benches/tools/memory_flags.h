// SPDX-License-Identifier: Apache-2.0
// Command line of howmany-memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benches/common/workload.h"

namespace howmany::benches {

struct MemoryFlags {
  Workload work;  // without devices; the mode is one of `modes`
  std::vector<std::string> modes = {"single", "ddp", "sharded:level=1", "sharded:level=2",
                                    "sharded"};
  std::vector<int> counts = {1, 2, 4, 8};
  int64_t batch_per_device = 0;  // 0: default_batch()
  int64_t global_batch = 0;      // replaces it if above 0
  int64_t device_memory = 0;     // bytes; 0: that of the smallest GPU here, if there is one
  std::string attention = "flash";
  bool json = false;
};

// Throws std::invalid_argument if a flag is bad, and CLI::Success after --help. Call it within
// run_program().
MemoryFlags parse_memory_flags(int argc, char** argv);

}  // namespace howmany::benches
