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

// Converts a row to a measurement. The name before the first "word:" is the case; the rest are
// parameters. The interval of the rate comes from the samples.
Measurement measurement_of(const BenchRow& row, const std::vector<SampleLine>& samples);

// Throws InputError that names the options to lower if a probe ran out of memory.
void refuse_too_large(const std::vector<BenchRow>& rows);
// Adds the number of files, and of unreadable ones, from the bench's context.
void add_files(WorkersFacts& facts, const nlohmann::json& context);

}  // namespace howmany::reports
