// SPDX-License-Identifier: Apache-2.0
// The command `howmany transfer`. Exit codes are those of `howmany backend`. One thread.
#pragma once

namespace CLI {
class App;
}

namespace howmany::reports {

// Adds its options. If it runs, `code` receives its exit code.
void add_transfer_command(CLI::App& sub, int& code);

}  // namespace howmany::reports
