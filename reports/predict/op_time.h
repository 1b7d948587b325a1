// SPDX-License-Identifier: Apache-2.0
// The seconds of a counted step on one GPU, by the formula and the rates of op_rates.h.
//
// Order. The host issues operations ahead of the GPU. If the step takes longer than its operations,
//   each of them begins later in proportion.
// Thread safety. The functions are pure.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "reports/predict/counted.h"
#include "reports/predict/ladder.h"

namespace howmany::reports {

constexpr double kMaxUnknown = 0.1;  // of a step's time

struct OpTimes {
  double gpu = 0, host = 0;   // seconds of a step
  double optimizer = 0;       // of `gpu`
  double unknown = 0;         // share of `gpu` in operations without a rate
  std::vector<double> begin;  // seconds from the start of the step to each place of its order, and
                              // to its end
  Range step;                 // seconds without collectives; 90 % interval
};

// Throws InputError if the step was refused, if the chip has no rates, or if operations without a
// rate take more than kMaxUnknown of the time.
OpTimes op_times(const CountedStep& step, const std::string& device);

// The compute capability of the chip, such as {8, 0}. Throws InputError if it has no rates.
std::array<int, 2> capability_of(const std::string& device);

}  // namespace howmany::reports
