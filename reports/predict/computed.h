// SPDX-License-Identifier: Apache-2.0
// Computed steps of one of our own models on a cluster, from its measured step on one device
// (model_runs.h). One thread at a time.
#pragma once

#include <optional>

#include "reports/predict/forecast.h"
#include "reports/results/record.h"

namespace howmany::reports {

// Returns the efficiency, or why there is none, on each number of devices that a forecast of the
// summary has, and on the largest measured one. Returns nullopt unless the summary
// is of one model and of one mode besides `single` that is computed, and holds its step on one
// device. `mode` is the one of a summary in which only `single` was measured. Throws InputError if
// the measured devices are of another kind than the cluster's, or if
// the program fails.
std::optional<ClusterSteps> computed_in(const Summary& summary, const Cluster& cluster,
                                        const ForecastOptions& options,
                                        const std::string& mode = "");

// Throws InputError if the mode cannot divide the model over `devices`. `batch` is per device, or
// the whole one if `strong`.
void check_computable(const std::string& model, const std::string& precision,
                      const std::string& mode, int64_t batch, bool strong, const Cluster& cluster,
                      int devices);

}  // namespace howmany::reports
