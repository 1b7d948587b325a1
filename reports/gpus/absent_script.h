// SPDX-License-Identifier: Apache-2.0
// The answer of `howmany gpus --cluster NAME --up-to N -- COMMAND` if no GPU is here: the step of
// the user's own script is counted with a pretended GPU, and predicted on the cluster's. Results
// are not kept. Not tied to any thread.
#pragma once

#include <optional>

#include "reports/gpus/command.h"
#include "reports/predict/forecast.h"

namespace howmany::reports {

// True for the user's own command and a cluster of GPUs, if no GPU is here and no device is named.
// A job with GPUs has some. Throws InputError if there is no such cluster.
bool of_absent_gpus_and_script(const Arguments& arguments);

// Counts the step alone and as one rank of a node, and predicts. Returns nullopt if it was
// interrupted. Throws InputError with the reason if nothing follows from the count, or if an
// argument is given that only a measurement can honour, and std::runtime_error if the script does
// not take a step.
std::optional<Forecast> predict_script(const Arguments& arguments);

}  // namespace howmany::reports
