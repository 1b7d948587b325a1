// SPDX-License-Identifier: Apache-2.0
// The model of ladder.h, fitted to 895 published curves of weak scaling (2,657 rows, K80 to B200)
// by scripts/studies/predict-check --fit, on 2026-11-29. For ladder.cpp alone.
#pragma once

#include <string_view>

namespace howmany::reports {

struct Rung {
  std::string_view name;
  double a, b;
  double low, high;              // quantiles of the scaled residuals
  double known_low, known_high;  // those around a and b in full, for losses that are known
  double max_doublings;
  int curves, sources;
};

constexpr Rung kRungs[] = {
    {"one", 0.0164, 0.0000, -0.128, 3.002, -0.243, 2.499, 4, 866, 8},
    {"some", 0.0000, 0.3029, -0.247, 0.938, -0.337, 0.723, 3, 433, 7},
    {"across", 0.0167, 0.3861, -0.194, 1.530, -0.366, 1.213, 6, 45, 3},
    {"base", 0.0271, 0.0000, -0.205, 2.387, -0.205, 2.387, 6, 74, 3},
    {"node", 0.0301, 0.1105, -0.222, 0.932, -0.222, 0.932, 3, 45, 3},
    {"nodes", 0.0147, 0.1716, -0.144, 0.341, -0.144, 0.341, 4, 69, 3},
};

// The loss per doubling that computed exchanges leave unexplained in 388 published rows on links
// that are known, by scripts/studies/device-rates --rest, on 2026-11-29.
constexpr double kRestInNode = 0.0312, kRestAcross = 0.0647;
// Quantiles of the scaled residuals of 324 of these rows, within a node, each from a fit without
// its source, on 2026-11-30.
constexpr double kComputedLow = -0.254, kComputedHigh = 1.218;

// A step on two nodes takes up to 1 + kSlowNetwork times as long as on one. Two nodes took 2.2 to 4
// times as long in users' reports (horovod/horovod#3788, mlfoundations/open_clip#466,
// facebookresearch/fairchem#432), three nodes 6 times. The gradients of 340 M parameters in f32
// take 2.2 s over 10 Gbit/s, nine times as long as a step of 0.24 s.
constexpr double kSlowNetwork = 9;

}  // namespace howmany::reports
