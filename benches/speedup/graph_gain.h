// SPDX-License-Identifier: Apache-2.0
// Measures what a GPU training step gains from a CUDA graph: `single` with graph=on and graph=off,
// alternating in one run, by the GPU's clock.
#pragma once

#include "benches/common/workload.h"
#include "core/base/statistics.h"

namespace howmany::benches {

struct GraphGain {
  std::vector<double> plain, captured;  // seconds per step, by round
  double gain = 0;                      // median of plain / captured over the rounds
  Interval interval;                    // of that median
};

struct GraphGainOptions {
  int rounds = 40;
  int together = 20;  // consecutive steps per sample, which is their mean
};

// Verifies both first; throws WrongData if one is wrong. `work` must have one GPU; its mode is
// ignored.
GraphGain measure_graph_gain(Workload work, const Dataset& data, Comm& alone,
                             const GraphGainOptions& options);

// Registers "speedup/graph_gain/<model>/batch:<n>" with Google Benchmark, with the counters gain,
// gain_low, gain_high, plain_median_s, captured_median_s. `work` must outlive the run.
void register_graph_gain(const Workload& work);

}  // namespace howmany::benches
