// SPDX-License-Identifier: Apache-2.0
// `howmany why DIR`: where the time of a recorded run goes at each number of devices, what would
// help, and a timeline of its ranks.
#pragma once

namespace CLI {
class App;
}

namespace howmany::reports {

// Adds options to the subcommand. If it runs, `code` receives its exit code.
void add_why_command(CLI::App& sub, int& code);

}  // namespace howmany::reports
