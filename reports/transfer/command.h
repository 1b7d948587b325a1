// SPDX-License-Identifier: Apache-2.0
// The command `howmany transfer`. Exit codes are those of `howmany backend`. One thread.
#pragma once

namespace CLI {
class App;
}

namespace howmany::reports {

// Adds the subcommand. If it runs, `code` receives its exit code.
void add_transfer_command(CLI::App& app, int& code);

}  // namespace howmany::reports
