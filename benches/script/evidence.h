// SPDX-License-Identifier: Apache-2.0
// What a run shows about the time of its steps: the member "why" of a line of samples, as
// reports/why/evidence.h reads it. Pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "benches/script/record.h"

namespace howmany::benches {

// The ranks are in order and have the same timed steps. Means are over the steps `first` to `last`
// if `all`, else over those of them that were neither unusually long nor short.
nlohmann::ordered_json evidence_json(const std::vector<RankRecord>& ranks, int64_t first,
                                     int64_t last, bool all);

}  // namespace howmany::benches
