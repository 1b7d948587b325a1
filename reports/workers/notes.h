// SPDX-License-Identifier: Apache-2.0
// Notes of `howmany workers` that need few facts. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>
#include "reports/workers/points.h"

namespace howmany::reports {

constexpr double kNoticeable = 1.05;  // noticeable factor of a rate or of a sample's time

std::string percent(double share);  // "1.1 %", "25 %"

// If a hard bound is below the number of cores, it should be raised first.
std::vector<std::string> bound_notes(const std::vector<WorkerBound>& bounds);

}  // namespace howmany::reports
