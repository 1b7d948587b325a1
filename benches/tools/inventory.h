// SPDX-License-Identifier: Apache-2.0
// The output of `howmany devices` as one JSON value (schema howmany.devices/1): the devices of this
// machine and the features of this build. Use from one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace howmany::benches {

// {"schema", "cpu_devices": {"default_count", "cores_per_device", "usable_cores",
// "because", "allowed", "limits"}, "cpu", "numa", "caches", "memory", "gpus",
// "gpus_because", "gpus_unknown", "gpus_hidden", "gpus_hidden_by", "driver", "backends":
// {"kernels", "comms"}, "launch", "modes", "models", "ranges"} A kernel or comm is {"name", "what",
// "built", "usable", "why"}. `usable` is the result of a real trial. The exceptions are comms if a
// launcher started several processes.
nlohmann::json take_inventory();

}  // namespace howmany::benches
