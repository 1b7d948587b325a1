// SPDX-License-Identifier: Apache-2.0
// Generates completion scripts of `howmany`. A script starts no program and evaluates nothing of
// the environment. Without a subcommand it offers the options of `run`, as the command does.
#pragma once

#include <string>

#include "reports/cli/completion/command_spec.h"

namespace howmany::reports {

std::string bash_script(const CommandSpec& root);
std::string zsh_script(const CommandSpec& root);
std::string fish_script(const CommandSpec& root);

}  // namespace howmany::reports
