// SPDX-License-Identifier: Apache-2.0
// Chooses the number of GPUs of a forecast. The functions are pure.
#pragma once

#include "reports/predict/forecast.h"

namespace howmany::reports {

// Time to train `samples`, and GPUs times that time. `low` is at the high end of the rate.
Range hours(const ForecastRow& row, double samples);
Range device_hours(const ForecastRow& row, double samples);

// Sets `recommended` and the sentences. The unfavourable end of each interval must meet the
// options. With `finish_within_hours`, the answer is the smallest number of GPUs that finishes,
// whatever its efficiency; else it is the largest that reaches `min_efficiency`.
void decide(Forecast& forecast);

}  // namespace howmany::reports
