// What the bench programs share: the context every JSON carries, timing of a step over ranks, and
// the hand-over to Google Benchmark. The rules are DESIGN section 4: warm up, time, maximum over
// ranks, stop when the interval is tight or the budget is spent. Collective functions are called by
// every rank of `comm`, in order.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "parallel/comm.h"

namespace howmany::benches {

// Commit, compiler, flags, CPU, cores allowed, governor, memory, library versions, world, launcher
// as custom context. Never the environment.
void add_context(const std::map<std::string, std::string>& more = {});

struct TimingOptions {
  double budget_seconds = 5;  // timed iterations stop here
  double target_half_width =
      0.01;  // ... or when the 95 % interval of the median is this tight, relative
  int min_iterations = 5;
  int max_iterations = 10'000;
  int warmup_iterations = 2;
};

struct Samples {
  std::vector<double> seconds;  // one per iteration: the maximum over ranks
  bool converged = false;       // stopped by the interval, not by the budget
};

// Times body() between barriers. Every rank takes the same decisions, since all see the same
// maxima. Collective.
Samples time_iterations(Comm& comm, const TimingOptions& options,
                        const std::function<void()>& body);

// Reports the samples as one Google Benchmark run with manual time (iterations = samples) and the
// counters median_s, p95_s, min_s, cv, samples. `counters` carry their unit in the name:
// samples_per_s, flop_per_s.
void report(benchmark::State& state, const Samples& samples,
            const std::map<std::string, double>& counters);

// Appends {"name", "seconds": [...], ...} to the file of HOWMANY_SAMPLES or --samples; nothing when
// unset.
void append_samples(const std::string& path, const std::string& name, const Samples& samples,
                    const std::map<std::string, std::string>& more = {});

}  // namespace howmany::benches
