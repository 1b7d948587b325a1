// SPDX-License-Identifier: Apache-2.0
// The answer of `howmany backend` as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "reports/comm/advise.h"

namespace howmany::reports {

// Returns the member `backend` of the summary's answer.
nlohmann::ordered_json to_json(const BackendAdvice& advice,
                               const std::vector<Measurement>& measurements);

}  // namespace howmany::reports
