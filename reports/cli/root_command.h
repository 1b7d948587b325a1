// SPDX-License-Identifier: Apache-2.0
// The command line of `howmany`.
#pragma once

#include <string>

namespace howmany::reports {

// Parses the arguments, runs the subcommand and returns its exit code. Throws InputError if the
// command line or the input is bad. `version`: the output of --version.
int run_command(int argc, char** argv, const std::string& version);

}  // namespace howmany::reports
