// SPDX-License-Identifier: Apache-2.0
// Command line of howmany-devices.
#pragma once

#include <string>

namespace howmany::benches {

struct DevicesFlags {
  bool json = false;
  std::string probe, probe_file;  // hidden; see benches/tools/probes.h
  std::string costs;              // hidden: a model; see benches/tools/costs.h
};

// Throws std::invalid_argument if a flag is bad, and CLI::Success after --help. Call it within
// run_program().
DevicesFlags parse_devices_flags(int argc, char** argv);

}  // namespace howmany::benches
