// SPDX-License-Identifier: Apache-2.0
// Adds the commands `completion`, `help` and `version`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace howmany::reports {

// Subcommands that are separate programs, howmany-NAME.
constexpr const char* kPrograms[] = {"train", "devices", "memory"};
// Names of these commands.
extern const std::vector<std::string> kMetaCommands;

struct BuildText {
  std::string version;  // the output of --version
  std::string date;     // of the man page; may be empty
};

// Adds the subcommands to the root `app`. They describe every subcommand that `app` has when they
// run. `app` and `code` must outlive the parse. `code` receives the exit code.
void add_meta_commands(CLI::App& app, const BuildText& build, int& code);

}  // namespace howmany::reports
