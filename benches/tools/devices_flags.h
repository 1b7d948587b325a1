// SPDX-License-Identifier: Apache-2.0
// Command line of howmany-devices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace howmany::benches {

struct DevicesFlags {
  bool json = false;
  bool engines = false;  // see engines.h, of these models
  std::vector<std::string> models = {"resnet18", "gpt2:width=1024,layers=8,heads=16,length=1024"};
  int64_t batch = 16;
  std::string computed;  // hidden: a file; see benches/tools/computed.h
};

// Throws std::invalid_argument if a flag is bad, and CLI::Success after --help. Call it within
// run_program().
DevicesFlags parse_devices_flags(int argc, char** argv);

}  // namespace howmany::benches
