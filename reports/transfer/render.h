// SPDX-License-Identifier: Apache-2.0
// Renders the answer of `howmany transfer` as tables and one sentence. Values only; not tied to any
// thread.
#pragma once

#include <string>
#include <vector>

#include "reports/transfer/advise.h"

namespace howmany::reports {

std::string render_transfer(const TransferAdvice& advice,
                            const std::vector<Measurement>& measurements, bool color);

}  // namespace howmany::reports
