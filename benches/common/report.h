// Samples as runs of Google Benchmark and as lines of a file.
//
//   benchmark::RegisterBenchmark("suite/case", body)->Iterations(1)->UseManualTime();
//   body: report(state, time_iterations(comm, {}, step), {{"samples_per_s", ...}});
//   main: add_context(); return run_benchmarks(argc, argv);
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "benches/common/timing.h"

namespace howmany::benches {

// Reports the samples as one Google Benchmark run with manual time, their mean, and the counters
// median_s, p95_s, min_s, cv, samples (which run_benchmarks shows as iterations). `counters` carry
// their unit in the name: samples_per_s, flop_per_s.
void report(benchmark::State& state, const Samples& samples,
            const std::map<std::string, double>& counters);
// What is left out because of `why`, or (empty) measured by another rank, has a row still.
void report_nothing(benchmark::State& state, const std::string& why);

struct SampleLine {
  std::string name;  // as Google Benchmark reports it
  Samples samples;
  std::vector<std::string> flags;                 // "oversubscribed"
  std::map<std::string, std::string> parameters;  // mode, model, devices, ...
  int world = 1;
  std::vector<double> busy_cores = {};  // in each sample's time, where that was looked at
};
// Appends one line of JSON to `path`; nothing when it is empty. Throws Error when it cannot.
void append_samples(const std::string& path, const SampleLine& line);

// The end of a bench program's main. Names come out without Google's "/iterations:1/manual_time",
// and the JSON of --benchmark_out is whole after every benchmark, so that a killed run keeps what
// it had. A `quiet` process (any rank but 0) prints and writes nothing. Returns 0; 2 for an unknown
// flag or a filter that matches nothing; 3 when a benchmark ended in an error.
int run_benchmarks(int argc, char** argv, bool quiet = false);
int run_benchmarks(std::vector<std::string> arguments, bool quiet = false);  // the program's first

}  // namespace howmany::benches
