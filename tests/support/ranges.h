// SPDX-License-Identifier: Apache-2.0
// Reads the output of tests/support/nvtx_recorder.cpp: the ranges that a process opened. The
// recorder is built next to the programs if the NVTX headers are installed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace howmany::testing_support {

struct RangeCount {
  uint64_t pushes = 0, pops = 0, payload = 0;
};
using RangeCounts = std::map<std::string, RangeCount>;  // "compute/linear"

inline std::string recorder_path() {
  const char* bin = std::getenv("HOWMANY_BIN");
  return bin ? std::string(bin) + "/libhm_nvtx_recorder.so" : "";
}

inline void add_ranges(const std::string& path, RangeCounts& counts) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::string category, name;
    RangeCount count;
    std::istringstream fields(line);
    std::getline(fields, category, '\t');
    std::getline(fields, name, '\t');
    fields >> count.pushes >> count.pops >> count.payload;
    RangeCount& sum = counts[category + "/" + name];
    sum.pushes += count.pushes;
    sum.pops += count.pops;
    sum.payload += count.payload;
  }
}

}  // namespace howmany::testing_support
