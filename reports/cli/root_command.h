// The command line of `howmany`.
#pragma once

#include "reports/cli/completion/cli.h"

namespace howmany::reports {

// Parses the arguments, runs the subcommand and returns its exit code. Throws InputError for a bad
// command line or bad input.
int run_command(int argc, char** argv, const BuildText& build);

}  // namespace howmany::reports
