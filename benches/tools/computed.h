// SPDX-License-Identifier: Apache-2.0
// The computed steps of a mode on other devices (benches/common/computed_step.h), for howmany.
// One thread at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace howmany::benches {

// The file at `path` holds {"model", "precision", "samples", "seconds": of a micro-batch with that
// number of samples on one device, "fixed_seconds": [those that do not depend on the samples,
// ...], "steps": [{"mode", "batch_per_device": samples, "table": as read_cost_table()}, ...]}. The
// batch of n devices is n times as large. Returns [{"devices": 8, "s": [of a step, for each of
// fixed_seconds]} or {"devices": 8, "why": "..."}, ...], one for each of steps. Throws
// std::invalid_argument if the file is malformed.
nlohmann::json computed_steps(const std::string& path);

}  // namespace howmany::benches
