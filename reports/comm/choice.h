// SPDX-License-Identifier: Apache-2.0
// Chooses the backend of `howmany backend` and writes the sentence. Uses the buckets of the model
// if every backend was measured at all of them, else the sweep of sizes. The answer is certain only
// if the chosen backend is apart from every other. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/comm/advise.h"

namespace howmany::reports {

// Sets recommended, certain and because, and adds notes.
void choose_backend(BackendAdvice& advice);

// Returns "gloo below 16 KiB, local above". Merges neighbouring ranges that are uncertain at all
// their sizes: "gloo or mpi below 127 B, mpi above".
std::string in_words(const std::vector<BestRange>& best, const Reach& reach = {});

}  // namespace howmany::reports
