// SPDX-License-Identifier: Apache-2.0
// The answer of `howmany gpus --model MODEL --cluster NAME --up-to N`: a prediction for GPUs of
// which none is here. Nothing is measured and no file is written. Not tied to any thread.
#pragma once

#include <string>
#include <vector>

#include "reports/gpus/command.h"
#include "reports/predict/forecast.h"

namespace howmany::reports {

// True for a cluster of GPUs without a command of the user's own. Throws InputError if there is no
// such cluster.
bool of_absent_gpus(const Arguments& arguments);

// Returns the forecast of reports/predict/preset.h. Throws InputError, also if an argument is given
// that only a measurement can honour.
Forecast predict_absent_gpus(const Arguments& arguments);

// The names of the given options that only a measurement can honour.
std::vector<std::string> only_for_measurements(const Arguments& arguments);
// Requires arguments.up_to.
ForecastOptions forecast_options(const Arguments& arguments, const Cluster& cluster);
// Throws InputError if the cluster has no such number of devices.
void refuse_beyond(const Cluster& cluster, int up_to);

}  // namespace howmany::reports
