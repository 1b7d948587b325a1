// SPDX-License-Identifier: Apache-2.0
// Explains in sentences why one mode is faster than another: what its devices waited for, and its
// memory per device. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"

namespace howmany::reports {

// Compares the modes that were measured on `devices` devices if there are several, and names each
// straggler.
std::vector<std::string> mode_notes(const std::vector<Point>& points, int devices,
                                    const std::string& things);

}  // namespace howmany::reports
