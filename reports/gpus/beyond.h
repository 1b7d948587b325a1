// SPDX-License-Identifier: Apache-2.0
// The part of the answer about more devices than were measured (howmany gpus --up-to): the member
// `beyond` of the summary's answer. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/gpus/advise.h"
#include "reports/gpus/results.h"

namespace howmany::reports {

// Returns the JSON of a Forecast, or {"refused": why}. `summary` holds the measurements.
nlohmann::ordered_json beyond_json(const Plan& plan, const Results& results, const Summary& summary,
                                   const AdviceOptions& options);

// Returns the text for a terminal; empty if the answer has no such member.
std::string beyond_text(const nlohmann::json& answer, bool color);

}  // namespace howmany::reports
