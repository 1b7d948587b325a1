// CUPTI's activity records as what they tell. Built with CUPTI's headers only; pure.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <functional>

#include "core/profile/gpu_activity.h"

namespace howmany {

// Kinds that were not asked for are passed over; times that cannot be are refused and counted.
// Times stay CUPTI's.
void add_record(const CUpti_Activity& record, GpuActivity& to);

// CUPTI's clock against ours, read as near to each other as can be, at the start and at the end.
struct ClockPair {
  int64_t theirs = 0, ours = 0;
};
void use_our_clock(GpuActivity& activity, ClockPair start, ClockPair end);

}  // namespace howmany
