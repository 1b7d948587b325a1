// SPDX-License-Identifier: Apache-2.0
#include "core/profile/recorder.h"
#include "core/profile/ticks.h"

namespace howmany {

int64_t ticks() { return profile_clock_ns(); }

}  // namespace howmany
