// SPDX-License-Identifier: Apache-2.0
// Reads the rows of a Google Benchmark file, of any release and with fields of any type. For
// suite.cpp.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace howmany::reports {

struct SuiteRow {
  std::string name, run_name, run_type, aggregate_name, aggregate_unit, time_unit;
  std::string error_message, skip_message;
  bool error = false, skipped = false, has_run_type = false;
  std::optional<double> real_time, cpu_time;  // as written; absent if not finite
  int64_t repetition_index = -1, family_index = -1, instance_index = -1, iterations = 0;
  std::vector<std::pair<std::string, double>> counters;  // finite only
};

// Calls `take` for every row of "benchmarks" and returns "context". Throws InputError naming
// `source` if the text is not JSON or has no "benchmarks".
nlohmann::json each_row(std::string text, const std::string& source,
                        const std::function<void(const SuiteRow&)>& take);

}  // namespace howmany::reports
