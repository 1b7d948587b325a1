// SPDX-License-Identifier: Apache-2.0
// The subcommand `predict`. The result goes to stdout. Nothing is measured.
#pragma once

#include <CLI/CLI.hpp>

namespace howmany::reports {

// `code` receives the exit code: 0. Parsing throws InputError (exit code 2) for bad input.
void add_predict_command(CLI::App& sub, int& code);

}  // namespace howmany::reports
