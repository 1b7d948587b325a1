// SPDX-License-Identifier: Apache-2.0
// A forecast for GPUs of which none is here, from the step on each number of them: those of our own
// models from published rates (preset.h), those of a script from its operations (counted.h).
//
// Model. The loss is that of the steps, and the part of the first rung's (ladder.h) that computed
//   exchanges leave unexplained: published curves lose about 3 % per doubling also if all is
//   hidden. That part is divided by the number of micro-batches for an exchange.
// Intervals. The efficiency: the interval of the first rung, and the steps at both ends of the
//   interval of one GPU, as if independent. The rate: that of one GPU too. So the interval of the
//   efficiency is narrower: a slow chip is slow on any number of GPUs.
// Thread safety. The functions are pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "reports/predict/forecast.h"

namespace howmany::reports {

// The step on a number of GPUs.
struct StepOn {
  Range seconds;             // at the value and both ends of an interval of one GPU
  double samples = 1;        // of each GPU, or in proportion to that
  double micro_batches = 1;  // for each exchange
  std::string why;           // it does not run or fit. `seconds` is void, but not that on one GPU
};

struct UnmeasuredSteps {
  std::string what;  // a model or a script
  Cluster cluster;
  Range per_s;                  // on one GPU
  std::map<int, StepOn> steps;  // by number of GPUs, from 1 on
  bool strong = false;          // the same batch on any number of GPUs
  bool of_batches = false;      // Forecast::of_batches
  std::string basis, next;      // Forecast's
  nlohmann::ordered_json counted = {};
};

// Predicts each number of GPUs that has a step, and decides. Throws InputError if an option lacks
// `samples`.
Forecast forecast(const UnmeasuredSteps& steps, const ForecastOptions& options);

// The interval of a product of two that are independent.
Range product(const Range& a, const Range& b, double times);

}  // namespace howmany::reports
