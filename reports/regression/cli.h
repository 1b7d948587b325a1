// The command line of `compare`, `gate` and `history`, for howmany.cpp.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace howmany::reports {

// Their names.
extern const std::vector<std::string> kComparingCommands;
// Adds the subcommands; the one that is called leaves its exit code in `code`, which must outlive
// `app`.
void add_comparing(CLI::App& app, int& code);

}  // namespace howmany::reports
