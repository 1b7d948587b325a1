// SPDX-License-Identifier: Apache-2.0
// An engine that adds latency to another one. Comm owns an engine and makes one call at a time.
#pragma once

#include <chrono>
#include <memory>

#include "parallel/comm/engine.h"

namespace howmany::comms {

// Requires delay >= 0. The result has the rank and the size of `inner`.
std::unique_ptr<CommEngine> delayed(std::unique_ptr<CommEngine> inner,
                                    std::chrono::microseconds delay);

}  // namespace howmany::comms
