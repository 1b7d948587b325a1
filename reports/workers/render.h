// SPDX-License-Identifier: Apache-2.0
// Renders the answer of `howmany workers` as JSON, and text from that JSON alone, so that `howmany
// report` prints the same text as the measurement. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/results/record.h"
#include "reports/workers/advise.h"

namespace howmany::reports {

// Returns the member `workers` of the summary's answer.
nlohmann::ordered_json to_json(const WorkersFacts& facts, const WorkersAdvice& advice);
// Renders text from that member. Columns without a figure are left out. Throws InputError if
// to_json() did not make it.
std::string render_workers(const nlohmann::json& answer, const std::string& source, bool color);
// Returns the text of the command: the answer, the table and `folder`. `path`: of the summary.
std::string workers_text(const Summary& summary, const std::string& path, const std::string& folder,
                         bool color);

}  // namespace howmany::reports
