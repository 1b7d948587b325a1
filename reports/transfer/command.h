// `howmany transfer`: its options, what it runs and what it prints. Exit codes are those of
// `howmany backend`. One thread.
#pragma once

namespace CLI {
class App;
}

namespace howmany::reports {

// Adds the subcommand; when it is called, `code` becomes its exit code.
void add_transfer_command(CLI::App& app, int& code);

}  // namespace howmany::reports
