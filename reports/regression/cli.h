// SPDX-License-Identifier: Apache-2.0
// Adds the commands `compare`, `gate` and `history`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace howmany::reports {

// Names of these commands.
extern const std::vector<std::string> kComparingCommands;
// Adds the subcommands. The one that runs sets `code`, which must outlive `app`.
void add_comparing(CLI::App& app, int& code);

}  // namespace howmany::reports
