// SPDX-License-Identifier: Apache-2.0
// Renders the summary of `howmany backend` as tables and sentences. Values only; not tied to any
// thread.
#pragma once

#include <string>
#include <vector>

#include "reports/comm/advise.h"
#include "reports/results/record.h"

namespace howmany::reports {

std::string render_backend(const BackendAdvice& advice,
                           const std::vector<Measurement>& measurements, bool color);

}  // namespace howmany::reports
