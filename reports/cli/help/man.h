// SPDX-License-Identifier: Apache-2.0
// Generates the man page of `howmany` from its command line and help topics.
#pragma once

#include <string>

#include "reports/cli/completion/command_spec.h"

namespace howmany::reports {

// Returns roff with the man macros, for section 1. `date` may be empty.
std::string man_page(const CommandSpec& root, const std::string& date);

}  // namespace howmany::reports
