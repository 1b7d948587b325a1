// SPDX-License-Identifier: Apache-2.0
// The part of the answer about more devices than were measured (howmany gpus --up-to): the member
// `beyond` of the summary's answer. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "reports/gpus/results.h"

namespace howmany::reports {

// The limits of the command line. Absent members keep those of an earlier answer.
struct ForecastLimits {
  std::optional<double> min_efficiency, samples, finish_within_hours, budget_device_hours;
};
// Throws InputError if a limit lacks the number of samples.
void check(const ForecastLimits& limits);

// Returns the JSON of a Forecast, or {"refused": why}. `summary` holds the measurements.
nlohmann::ordered_json beyond_json(const Plan& plan, const Results& results, const Summary& summary,
                                   const ForecastLimits& limits);
// Decides again. `beyond` is such a JSON.
nlohmann::ordered_json beyond_again(const nlohmann::json& beyond, const ForecastLimits& limits);

// Returns true if this part comes first: the measured part has no answer, because one device was
// measured, and this one was not refused.
bool is_beyond_first(const nlohmann::json& answer);

// Returns the text for a terminal; empty if the answer has no such member.
std::string beyond_text(const nlohmann::json& answer, bool color);

}  // namespace howmany::reports
