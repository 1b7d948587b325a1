// What a GPU's training step gains when it is captured once and then asked for as a whole: `single`
// with graph=on and graph=off in turn, in one run, by the GPU's own clock.
#pragma once

#include "benches/common/workload.h"
#include "core/base/statistics.h"

namespace howmany::benches {

struct GraphGain {
  std::vector<double> plain, captured;  // seconds of a step, by round
  double gain = 0;                      // the median of plain / captured over the rounds
  Interval interval;                    // of that median
};

struct GraphGainOptions {
  int rounds = 40;
  int together = 20;  // steps one after the other, whose mean is a sample
};

// Both are verified first; throws WrongData. `work` has one GPU, its mode is not looked at.
GraphGain measure_graph_gain(Workload work, const Dataset& data, Comm& alone,
                             const GraphGainOptions& options);

// Registers "speedup/graph_gain/<model>/batch:<n>" with Google Benchmark, with the counters gain,
// gain_low, gain_high, plain_median_s, captured_median_s. `work` must outlive the run.
void register_graph_gain(const Workload& work);

}  // namespace howmany::benches
