// SPDX-License-Identifier: Apache-2.0
// The command line of `howmany`.
#pragma once

#include "reports/cli/completion/cli.h"

namespace howmany::reports {

// Parses the arguments, runs the subcommand and returns its exit code. Throws InputError if the
// command line or the input is bad.
int run_command(int argc, char** argv, const BuildText& build);

}  // namespace howmany::reports
