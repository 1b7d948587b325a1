// SPDX-License-Identifier: Apache-2.0
// `howmany workers -- CMD`: how many loader workers for the user's own PyTorch script. One thread.
#pragma once

#include <string>

#include "reports/workers/command.h"
#include "reports/workers/demand.h"

namespace howmany::reports {

// Starts the command once for a sweep, and once more if numbers between are left. Returns an exit
// code. Throws InputError if the command cannot be measured.
int run_script_workers(const WorkersArguments& arguments);

// --worker-type pytorch: likewise, with a script of ours that only loads --data. Results go to
// `folder`. Throws InputError if there is no Python or the data has no samples for it.
int run_torch_loader(const WorkersArguments& arguments, const std::string& folder,
                     const Demand& demand);

}  // namespace howmany::reports
