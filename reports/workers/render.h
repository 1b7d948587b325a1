// SPDX-License-Identifier: Apache-2.0
// Renders the answer of `howmany workers` as JSON, and text from that JSON. Values only; not tied
// to any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/workers/advise.h"

namespace howmany::reports {

// Returns the member `workers` of the summary's answer.
nlohmann::ordered_json to_json(const WorkersFacts& facts, const WorkersAdvice& advice);
// Renders text from that member alone. Columns without a figure are left
// out. Throws InputError if to_json() did not make it.
std::string render_workers(const nlohmann::json& answer, const std::string& source, bool color);

}  // namespace howmany::reports
