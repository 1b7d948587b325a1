// What the bench programs share: the context every JSON carries, timing of a step over ranks, and
// the hand-over to Google Benchmark. The rules: warm up, time, maximum over ranks, stop when the
// interval of the median is tight or the budget is spent. Collective functions are called by every
// rank of `comm`, in order.
//
//   benchmark::RegisterBenchmark("suite/case", body)->Iterations(1)->UseManualTime();
//   body: report(state, time_iterations(comm, {}, step), {{"samples_per_s", ...}});
//   main: add_context(); return run_benchmarks(argc, argv);
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/statistics.h"
#include "parallel/comm.h"

namespace howmany::benches {

// Commit, compiler, flags, CPU, the first GPU, cores allowed, governor, memory, library versions as
// custom context, with `more` (world, launcher). Never the environment.
void add_context(const std::map<std::string, std::string>& more = {});

struct TimingOptions {
  double budget_seconds = 5;        // timed iterations stop here
  double target_half_width = 0.01;  // ... or when the 95 % interval of the median is this tight,
                                    // relative to the median
  int min_iterations = 6;           // the least that have an interval
  int max_iterations = 10'000;
  int warmup_iterations = 2;
};

struct Samples {
  std::vector<double> seconds;  // one per iteration: the maximum over ranks
  bool converged = false;       // stopped by the interval, not by the budget
};

// What of these fits into their budget when one iteration, now done, took so long: as asked for,
// less the warm-up that it was; or at least one, told without an interval; or nothing.
std::optional<TimingOptions> fitting(const TimingOptions& options, double one_seconds);

// Times body() between barriers. Every rank takes the same decisions, since all see the same
// maxima. Collective.
Samples time_iterations(Comm& comm, const TimingOptions& options,
                        const std::function<void()>& body);

// The same for one thread, of what one() tells by a clock of its own. The budget is the host's
// time.
Samples sample(const TimingOptions& options, const std::function<double()>& one);

// As time_iterations, of steps that a GPU works through behind the host, which is at most one step
// ahead of it: a step lasts from the end of the one before to its own, by the GPU's clock, whatever
// it did meanwhile. Collective.
Samples time_on_gpu(Comm& comm, const TimingOptions& options, int gpu,
                    const std::function<void()>& step);

struct PairedSamples {
  Samples ours, bare;
  std::vector<double> ratios;  // ours / bare, of neighbours
};
// Of each round what `ours` and `theirs` return, after a few rounds to warm up; neither always
// follows the other, because what one leaves in the caches helps the next.
struct Turns {
  std::vector<double> ours, theirs;
};
Turns in_turn(int rounds, const std::function<double()>& ours,
              const std::function<double()>& theirs);
PairedSamples paired(Turns turns);
// body() as time_iterations times it, and `bare`, which returns the seconds that it timed by
// itself, in turn. Collective.
PairedSamples time_in_turn(Comm& comm, int rounds, const std::function<void()>& body,
                           const std::function<double()>& bare);

// median_interval(), or 0 to infinity if there are too few samples to bound the median.
Interval median_bounds(std::span<const double> samples);

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
