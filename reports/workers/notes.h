// Sentences beside the answer of `howmany workers` that need only some of its facts. Values only;
// not tied to any thread.
#pragma once

#include <string>
#include <vector>
#include "reports/workers/points.h"

namespace howmany::reports {

constexpr double kNoticeable = 1.05;  // of a rate, or of what a sample takes

std::string number(int n, const char* noun);  // "1 worker", "2 workers"
std::string percent(double share);            // "1.1 %", "25 %"

// Why costs of Python are not part of what was measured; none where all are.
std::vector<std::string> left_out_of_python(const PythonCost& python);
// That, and what is part of it.
std::vector<std::string> python_notes(const PythonCost& python);
// A hard bound below what the cores could use is the first thing to lift.
std::vector<std::string> bound_notes(const WorkersFacts& facts);

}  // namespace howmany::reports
