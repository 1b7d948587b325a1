// SPDX-License-Identifier: Apache-2.0
// The summary of `howmany workers`, and its output.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/results/record.h"
#include "reports/workers/command.h"
#include "reports/workers/measure.h"

namespace howmany::reports {

// A number of workers that was measured several times counts as one round each time. `answer`: the
// member `workers`.
Summary loader_summary(const LoaderResults& results, const nlohmann::ordered_json& request,
                       double busy_elsewhere, const nlohmann::ordered_json& answer);

// Writes the files of the summary, and prints it as text or JSON.
void write_and_print(const WorkersArguments& arguments, const std::string& folder,
                     const Summary& summary);

}  // namespace howmany::reports
