// SPDX-License-Identifier: Apache-2.0
// Reads rows of loader_bench and script_bench, and their samples. Values only; not tied to any
// thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <vector>

#include "reports/results/bench_file.h"
#include "reports/results/record.h"
#include "reports/workers/points.h"

namespace howmany::reports {

double counter(const BenchRow& row, const char* name, double otherwise = 0);

// Converts a row to a measurement. The name before the first "word:" is the case; the rest are
// parameters. One row has no interval; over_rounds() adds it.
Measurement measurement_of(const BenchRow& row);

// Adds the turns of a run, and returns their numbers of workers. The rounds follow those that are
// there. Throws InputError if a row names no number, or has neither samples/s nor an error.
std::set<int> add_turns(WorkersFacts& facts, const std::vector<BenchRow>& rows);
// Adds what the rows of script_bench have in their samples: the script's own number, ranks, batch.
// Throws InputError if the files do not fit together.
void add_script(WorkersFacts& facts, const std::vector<BenchRow>& rows,
                const std::vector<SampleLine>& samples);
// Adds the number of files, of unreadable ones, and the size of a sample.
void add_files(WorkersFacts& facts, const nlohmann::json& context);

}  // namespace howmany::reports
