// The answer of `howmany workers` as JSON, and the text made of that. Values only; not tied to any
// thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reports/workers/advise.h"

namespace howmany::reports {

// The member `workers` of the summary's answer, and the text made of it alone.
nlohmann::ordered_json to_json(const WorkersFacts& facts, const WorkersAdvice& advice);
// Throws InputError when the answer is not what to_json makes.
std::string render_workers(const nlohmann::json& answer, const std::string& source, bool color);

}  // namespace howmany::reports
