// SPDX-License-Identifier: Apache-2.0
// Recommends a backend and writes the sentence. Uses the gradient buckets of the model if every
// backend was measured at all of them, else the sweep of sizes. The answer is certain only if the
// backend is apart from every other. Values only; not tied to any thread.
#pragma once

#include "reports/comm/advise.h"

namespace howmany::reports {

// Sets recommended, certain, reason and because, and may add a note. Requires operations and
// models.
void recommend_backend(BackendAdvice& advice);

}  // namespace howmany::reports
