// SPDX-License-Identifier: Apache-2.0
// Renders parts of an answer of `howmany gpus` for report.html: the table of the terminal with the
// time and the device-hours to train, and a job script. Text may come from untrusted files, so it
// is escaped and its size is bounded. Values only; not tied to any thread.
#pragma once

#include <string>

#include "reports/results/record.h"

namespace howmany::reports {

// `one` is a case of the answer. Returns "" if it has no table.
std::string gpus_table(const nlohmann::json& one, const nlohmann::json& answer);

// The rows of `answer.beyond`: measured, rehearsed and predicted. Returns "" if it has none.
std::string beyond_table(const nlohmann::json& beyond);

// A collapsed job script. Returns "" if the summary holds no recommendation for `gpus`.
std::string job_script_section(const Summary& summary);

}  // namespace howmany::reports
