// Completion scripts of `howmany`. Each is complete in itself: it starts no program and evaluates
// nothing of the environment. Without a subcommand the options are those of `run`, as in the
// command itself.
#pragma once

#include <string>

#include "reports/cli/completion/command_spec.h"

namespace howmany::reports {

std::string bash_script(const CommandSpec& root);
std::string zsh_script(const CommandSpec& root);
std::string fish_script(const CommandSpec& root);

}  // namespace howmany::reports
