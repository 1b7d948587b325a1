// SPDX-License-Identifier: Apache-2.0
// The work of a model, and the computed steps of a mode on devices that are not here
// (benches/common/computed_step.h), for howmany. One thread at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace howmany::benches {

// The file at `path` holds {"model", "precision", "samples", "seconds": of a micro-batch with that
// number of samples on one device, "fixed_seconds": [those that do not depend on the samples,
// ...], "steps": [{"mode", "batch_per_device": samples, "table": as read_cost_table()}, ...]}, or
// "model" alone. The batch of n devices is n times as large.
// Returns {"work", "forward_flop": of one sample, "steps": [{"devices": 8, "s": [of a step, for
// each of fixed_seconds]} or {"devices": 8, "why": "..."}, ...]}, one for each of steps. `work` is
// "recurrences" if the model has any, else "convolutions" or "products" (of matrices): the one with
// more FLOP. Throws std::invalid_argument if the file is malformed or there is no such model.
nlohmann::json computed_steps(const std::string& path);

}  // namespace howmany::benches
