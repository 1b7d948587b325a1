// SPDX-License-Identifier: Apache-2.0
// Predicts the training rate on more GPUs from measured rates on fewer, for weak scaling of data
// parallel training.
//
// Model. With e(n) the rate per GPU relative to that of the smallest measured number, the loss is
//   y(n) = -ln e(n). From the largest measured number m on, with d = log2(n / m),
//   y(n) = y(m) + a d + b d max(y(m), 0), and at least 0: no efficiency above 1 is predicted.
// Rungs. a and b depend on the measured numbers and on the boundary of the node (rungs.h).
//   Within a node: one number of GPUs was measured, or some. Across nodes: only a part of a node
//   was measured; only one number, of a node or more (base); up to a whole node; or several nodes.
//   a and b are halved on a rung if some source was otherwise predicted worse than by
//   "the efficiency stays", from a fit without that source.
// Interval. 90 %, split conformal (Lei et al. 2018): quantiles of the residuals of the published
//   curves, relative to 0.1 d + y(n). Each curve is predicted by a fit without its source.
// Networks. From a part of a node, or from one number of GPUs, nothing is known of the network. The
//   interval then holds slow ones: the exchange of a ring of N nodes takes 2 (N - 1) / N times that
//   of two nodes, which takes kSlowNetwork times as long as a step.
// Limits. Nothing is predicted further than the published curves of a rung reach. The loader, the
//   network and the size of the model enter only through the measured rates. The interval does not
//   include their spread.
// Thread safety. The functions are pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace howmany::reports {

constexpr double kPredictionCoverage = 0.9;
constexpr int kMaxPredicted = 16'384;
constexpr int kComputedRows = 324;  // published ones, behind predict_computed() within a node

struct RateAt {
  int devices = 1;
  double per_s = 0;  // samples per second, or any other rate
};

// The rate per device, relative to that of `first`.
double relative_efficiency(const RateAt& first, const RateAt& one);

struct Range {
  double value = 0, low = 0, high = 0;
};

struct Predicted {
  int devices = 1;
  Range per_s;
  Range efficiency;     // relative to the smallest measured number
  std::string refused;  // if not empty, the reason why nothing is predicted
};

// Predicts the rate on `devices` GPUs. `measured` is sorted by devices. Throws InputError if it is
// empty, holds a number twice or a rate that is not above 0, or its largest number is not below
// `devices`. `loss` is y(devices) if it is known better than by the model, as from a replay on a
// known network. The interval is then as wide as published curves spread, or wider.
Predicted predict(const std::vector<RateAt>& measured, int devices, int devices_per_node,
                  std::optional<double> loss = {});

// Predicts the rate on `devices` GPUs from that on one, if the loss of the exchanges is computed
// (preset.h). The rest of the loss is that which computed exchanges leave unexplained in published
// curves, over `exchanges`: the number of micro-batches for each exchange. Within a node, the
// interval is as wide as the residuals of published rates (rungs.h).
Predicted predict_computed(double per_s, int devices, int devices_per_node, double computed_loss,
                           double exchanges);

// True if the interval of predict() without a loss holds slow networks.
bool holds_slow_networks(const std::vector<RateAt>& measured, int devices, int devices_per_node);

// The rung on which `devices` GPUs are predicted, and the curves that it was fitted to.
struct RungUsed {
  std::string name;
  int curves = 0, sources = 0;
};
RungUsed rung_used(const std::vector<RateAt>& measured, int devices, int devices_per_node);

// The measurement that would narrow the prediction most.
struct NextRun {
  int devices = 1;
  Range efficiency;  // predicted then, if the measurement is as predicted
};
// Returns nullopt if no smaller number of GPUs would narrow it.
std::optional<NextRun> next_run(const std::vector<RateAt>& measured, int devices,
                                int devices_per_node);

}  // namespace howmany::reports
