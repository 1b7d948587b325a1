// SPDX-License-Identifier: Apache-2.0
// Reads rows of loader_bench and their samples. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/results/bench_file.h"
#include "reports/results/record.h"
#include "reports/workers/points.h"

namespace howmany::reports {

double counter(const BenchRow& row, const char* name, double otherwise = 0);
// Returns the counter with the interval of its `_half_width`, limited to 0 to 1.
Metric with_half_width(const BenchRow& row, const char* name, const char* unit);

// Returns the last line of that name, or nullptr. A row's name may continue after it: Google
// Benchmark appends suffixes, and paced runs do too.
const SampleLine* line_of(const std::vector<SampleLine>& samples, const std::string& name);

// Converts a row to a measurement. The name before the first "word:" is the case; the rest are
// parameters. The interval of the rate comes from the samples.
Measurement measurement_of(const BenchRow& row, const std::vector<SampleLine>& samples);

// Throws InputError that names the options to lower if a probe ran out of memory.
void refuse_too_large(const std::vector<BenchRow>& rows);
// Adds the number of files, and of unreadable ones, from the bench's context.
void add_files(WorkersFacts& facts, const nlohmann::json& context);

}  // namespace howmany::reports
