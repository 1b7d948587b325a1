// SPDX-License-Identifier: Apache-2.0
// The JSON of a forecast: what `howmany predict --json` prints, and the member `beyond` of the
// summary's answer. Values only; not tied to any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "reports/predict/forecast.h"

namespace howmany::reports {

const char* name_of(Evidence evidence);

nlohmann::ordered_json to_json(const Forecast& forecast);
// Throws InputError that names the place.
Forecast forecast_from_json(const nlohmann::json& json, const std::string& source);

}  // namespace howmany::reports
