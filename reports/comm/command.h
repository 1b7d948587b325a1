// `howmany backend`: its options, what it runs and what it prints. Exit codes: 0 fine, 1 wrong
// data, 2 bad usage or input (thrown as InputError), 3 a measurement failed or was interrupted;
// what was measured is kept. One thread.
#pragma once

#include <string>
#include <vector>

#include "core/base/cli/output_options.h"
#include "reports/comm/run.h"

namespace howmany::reports {

// Adds the subcommand; when it is called, `code` becomes its exit code.
void add_backend_command(CLI::App& app, int& code);

// Writes the summary and prints it as asked; the exit code.
int finish(const std::string& folder, Summary& summary, const nlohmann::json& request,
           const std::vector<SuiteRun>& runs, const OutputArguments& a, const std::string& text);

}  // namespace howmany::reports
