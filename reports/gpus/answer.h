// SPDX-License-Identifier: Apache-2.0
// The answer of `howmany gpus` for one model: the recommended number of devices, the reason and the
// notes. One thread.
#pragma once

#include <string>

#include "reports/gpus/advise.h"

namespace howmany::reports {

// Sets recommended, certain, disturbed, mode, backend, reason, because and notes from
// advice.points, whose best configurations are marked. `noun` names a device: "GPU", "CPU device".
void write_answer(const AdviceOptions& options, const std::string& noun, Advice& advice);

}  // namespace howmany::reports
