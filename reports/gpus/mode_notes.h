// Why one way of dividing the work is faster than another, in sentences: what its devices stood
// waiting for, and how much memory each needed. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/advise.h"

namespace howmany::reports {

// Compares the modes measured on `devices` where there are several, and names each straggler.
std::vector<std::string> mode_notes(const std::vector<Point>& points, int devices,
                                    const std::string& things);

}  // namespace howmany::reports
