// SPDX-License-Identifier: Apache-2.0
// `howmany workers -- CMD`: how many loader workers for the user's own PyTorch script. One thread.
#pragma once

#include "reports/workers/command.h"

namespace howmany::reports {

// Starts the command once for a sweep, and once more if numbers between are left. Returns an exit
// code. Throws InputError if the command cannot be measured.
int run_script_workers(const WorkersArguments& arguments);

}  // namespace howmany::reports
