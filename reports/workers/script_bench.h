// SPDX-License-Identifier: Apache-2.0
// Measures PyTorch's DataLoader in a script with script_bench: the user's own script, or
// torch_loader(). One thread.
#pragma once

#include <memory>

#include "reports/script/script.h"
#include "reports/workers/bench.h"
#include "reports/workers/measure.h"

namespace howmany::reports {

// The script is started once for each run of turns. It must outlive the bench.
std::unique_ptr<WorkersBench> make_script_bench(BenchRuns& runs, const Script& script,
                                                const nlohmann::json& limits);
// Writes a script that only loads --data to `folder`, and returns its command. Throws InputError if
// there is no such Python.
Script torch_loader(const WorkersArguments& arguments, const std::string& folder, double demand);

}  // namespace howmany::reports
