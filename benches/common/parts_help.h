// SPDX-License-Identifier: Apache-2.0
// The parts of this build, for --help.
#pragma once

#include <string>

namespace howmany::benches {

// Returns the models, modes and communication backends, one per line with a description and its
// options.
std::string parts_help();

}  // namespace howmany::benches
