// SPDX-License-Identifier: Apache-2.0
// The computed steps of a mode on other devices (benches/common/computed_step.h), for howmany.
// One thread at a time.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace howmany::benches {

// The file at `path` holds {"model", "mode", "precision", "batch_per_device": samples, "seconds":
// of a step of one device, "tables": [cost tables, as read_cost_table()]}. The batch of n devices
// is n times as large. Returns [{"devices": 8, "s": 0.25} or {"devices": 8, "why": "..."}, ...],
// one for each table. Throws std::invalid_argument if the file is malformed.
nlohmann::json computed_steps(const std::string& path);

}  // namespace howmany::benches
