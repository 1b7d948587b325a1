// SPDX-License-Identifier: Apache-2.0
// The command `howmany backend`. Results are kept if a measurement fails. One thread.
//
// Exit codes:
// - 0: success
// - 1: wrong data
// - 2: bad usage or input (thrown as InputError)
// - 3: a measurement failed or was interrupted
#pragma once

#include <string>
#include <vector>

#include "core/base/cli/output_options.h"
#include "reports/comm/run.h"

namespace howmany::reports {

// Adds its options. If it runs, `code` receives its exit code. `command`: the words after "--",
// which outlive the callback.
void add_backend_command(CLI::App& sub, const std::vector<std::string>& command, int& code);

// Writes and prints the summary. Returns the exit code.
int finish(const std::string& folder, Summary& summary, const nlohmann::json& request,
           const std::vector<SuiteRun>& runs, const OutputArguments& a, const std::string& text);

}  // namespace howmany::reports
