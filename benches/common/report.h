// SPDX-License-Identifier: Apache-2.0
// Reports samples as runs of Google Benchmark and as lines of a file.
//
//   benchmark::RegisterBenchmark("suite/case", body)->Iterations(1)->UseManualTime();
//   body: report(state, time_iterations(comm, {}, step), {{"samples_per_s", ...}});
//   main: add_context(); return run_benchmarks(argc, argv);
#pragma once

#include <benchmark/benchmark.h>

#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "benches/common/timing.h"

namespace howmany::benches {

// Reports the samples as one Google Benchmark run with manual time. The time is their mean; the
// counters are median_s, p95_s, min_s, cv and samples (which run_benchmarks() shows as iterations).
// Names in `counters` end in their unit: samples_per_s, flop_per_s.
void report(benchmark::State& state, const Samples& samples,
            const std::map<std::string, double>& counters);
// Reports a row without figures, for a case that was skipped because of `why` or, if that is empty,
// measured by another rank.
void report_nothing(benchmark::State& state, const std::string& why);
// Reports a case that failed.
void report_failure(benchmark::State& state, const std::exception& error);

struct SampleLine {
  std::string name;  // as Google Benchmark reports it
  Samples samples;
  std::vector<std::string> flags;                 // "oversubscribed"
  std::map<std::string, std::string> parameters;  // mode, model, devices, ...
  int world = 1;
  nlohmann::ordered_json steps = {};    // of a rehearsal, with their collectives; null: none
  nlohmann::ordered_json why = {};      // of a script, see benches/script/evidence.h; null: none
  nlohmann::ordered_json counted = {};  // of a script, see reports/predict/counted.h; null: none
};
// Appends one line of JSON to `path`, if that is not empty. Throws Error if it cannot be written.
void append_samples(const std::string& path, const SampleLine& line);

// Ends the main function of a bench program: runs the registered benchmarks.
// * Names do not have Google's suffix "/iterations:1/manual_time".
// * The JSON of --benchmark_out is complete after every benchmark, so a killed run keeps its
//   results.
// * A `quiet` process (any rank but 0) prints and writes nothing.
// * Returns 0; 2 if a flag is unknown or the filter matches nothing; 3 if a benchmark failed.
int run_benchmarks(int argc, char** argv, bool quiet = false);
int run_benchmarks(std::vector<std::string> arguments, bool quiet = false);  // [0]: the program

}  // namespace howmany::benches
