// SPDX-License-Identifier: Apache-2.0
// Notes of `howmany workers` that need few facts. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>
#include "reports/workers/points.h"

namespace howmany::reports {

constexpr double kNoticeable = 1.05;  // noticeable factor of a rate or of a sample's time

std::string percent(double share);  // "1.1 %", "25 %"

// Returns which costs of Python were not measured, and why. Empty if all were.
std::vector<std::string> left_out_of_python(const PythonCost& python);
// Also includes the costs that were measured.
std::vector<std::string> python_notes(const PythonCost& python);
// If a hard bound is below the number of cores, it should be raised first.
std::vector<std::string> bound_notes(const std::vector<WorkerBound>& bounds);

}  // namespace howmany::reports
