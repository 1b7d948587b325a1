// The command line of `completion`, `help` and `version`: the commands about the command line
// itself.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace howmany::reports {

// Their names.
extern const std::vector<std::string> kMetaCommands;

struct BuildText {
  std::string version;  // all lines of --version
  std::string date;     // of the man page; may be empty
};

// Adds the subcommands to `app`, the root. They describe every subcommand that `app` has when they
// run. `app` and `code`, which receives the exit code, must outlive the parse.
void add_meta_commands(CLI::App& app, const BuildText& build, int& code);

}  // namespace howmany::reports
