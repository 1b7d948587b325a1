// SPDX-License-Identifier: Apache-2.0
// The summary of `howmany workers`, and its output.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/results/record.h"
#include "reports/workers/bench_runs.h"

namespace howmany::reports {

// A number of workers that was measured several times counts as one round each time. `answer`: the
// member `workers`.
Summary loader_summary(const LoaderResults& results, const nlohmann::ordered_json& request,
                       double busy_elsewhere, const nlohmann::ordered_json& answer);

// Returns the text of the command: the answer, the table and `folder`. `path`: of the summary.
std::string workers_text(const Summary& summary, const std::string& path, const std::string& folder,
                         bool color);
// Writes the files of the summary, and prints it as text or JSON.
void write_and_print(const WorkersArguments& arguments, const std::string& folder,
                     const Summary& summary);

}  // namespace howmany::reports
