// The decision of `howmany backend` and its sentence: by the buckets of the model where every
// backend was measured at all of them, else by the sweep of sizes. It is certain only where the one
// that is chosen is apart from every other. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/comm/advise.h"

namespace howmany::reports {

// Fills in recommended, certain and because, and adds to the notes.
void choose_backend(BackendAdvice& advice);

// "gloo below 16 KiB, local above". Neighbouring ranges that are certain at none of their sizes are
// told as one: "gloo or mpi below 127 B, mpi above".
std::string in_words(const std::vector<BestRange>& best, const Reach& reach = {});

}  // namespace howmany::reports
