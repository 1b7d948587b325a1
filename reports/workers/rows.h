// What a row of loader_bench tells, with its samples. Values only; not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/results/bench_file.h"
#include "reports/results/record.h"
#include "reports/workers/points.h"

namespace howmany::reports {

double counter(const BenchRow& row, const char* name, double otherwise = 0);
// The counter with the interval that its `_half_width` tells, within 0 and 1.
Metric with_half_width(const BenchRow& row, const char* name, const char* unit);

// The last of that name; null when there is none. A row's name may go on where Google Benchmark
// adds to it, and so does the name of a paced run.
const SampleLine* line_of(const std::vector<SampleLine>& samples, const std::string& name);

// A row as a measurement: what stands before the first "word:" is the case, the rest are
// parameters; the rate's interval comes from the samples.
Measurement measurement_of(const BenchRow& row, const std::vector<SampleLine>& samples);

// Throws InputError that names the options to lower where a probe had too little memory.
void refuse_too_large(const std::vector<BenchRow>& rows);
// The files that the bench's context tells of, and those that it left out.
void add_files(WorkersFacts& facts, const nlohmann::json& context);

}  // namespace howmany::reports
