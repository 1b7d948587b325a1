// SPDX-License-Identifier: Apache-2.0
// The model of ladder.h, fitted to 895 published curves of weak scaling (2,657 rows, K80 to B200)
// by scripts/studies/predict-check --fit, on 2026-11-26. For ladder.cpp alone.
#pragma once

#include <string_view>

namespace howmany::reports {

struct Rung {
  std::string_view name;
  double a, b;
  double low, high;  // quantiles of the scaled residuals
  double max_doublings;
  int curves, sources;
};

constexpr Rung kRungs[] = {
    {"one", 0.0336, 0.0000, -0.783, 4.248, 4, 866, 8},
    {"some", 0.0000, 0.5943, -0.615, 1.522, 3, 433, 7},
    {"across", 0.0744, 0.5377, -0.749, 4.160, 6, 45, 3},
    {"base", 0.0197, 0.0000, -0.686, 1.981, 6, 29, 1},
    {"node", 0.0315, 0.1844, -0.425, 1.479, 3, 45, 3},
    {"nodes", 0.0138, 0.1725, -0.428, 0.610, 4, 69, 3},
};

// The share of the loss of "one" and "across" that computed exchanges leave unexplained: fits with
// and without the computed losses of the same 388 rows, on links that are known, by
// scripts/studies/device-rates --rest, on 2026-11-29.
constexpr double kRestInNode = 0.93, kRestAcross = 0.87;

}  // namespace howmany::reports
