// SPDX-License-Identifier: Apache-2.0
// The cheapest clock, which a range reads twice: the time stamp counter if the kernel uses it on
// all cores, else CLOCK_MONOTONIC. To convert ticks to nanoseconds, read both clocks at two points
// in time and interpolate. For the recorder only. Thread-safe.
#pragma once

#include <cstdint>

namespace howmany {

int64_t ticks();

}  // namespace howmany
