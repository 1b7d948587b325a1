// SPDX-License-Identifier: Apache-2.0
// Converts CUPTI activity records to spans and calls. Needs CUPTI's headers, not its library. Pure.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <functional>

#include "core/profile/gpu_activity.h"

namespace howmany {

// Adds the record to `to`, with CUPTI's times. Ignores kinds that were not requested. Counts
// records with impossible times in `refused` and drops them.
void add_record(const CUpti_Activity& record, GpuActivity& to);

// A reading of CUPTI's clock and of profile_clock_ns(), as close together as possible. One pair
// from the start and one from the end convert all times of a session.
struct ClockPair {
  int64_t theirs = 0, ours = 0;
};
void use_our_clock(GpuActivity& activity, ClockPair start, ClockPair end);

}  // namespace howmany
