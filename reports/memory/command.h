// SPDX-License-Identifier: Apache-2.0
// `howmany memory -- COMMAND`: does a step of the user's own script fit a device, and on how many
// ranks? Without a command, howmany-memory answers for our models.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace howmany::reports {

// Adds options to the subcommand. If it runs, `code` receives its exit code. `command`: the words
// after "--", read when it runs.
void add_memory_command(CLI::App& sub, const std::vector<std::string>& command, int& code);

}  // namespace howmany::reports
