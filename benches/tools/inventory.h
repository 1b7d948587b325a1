// Everything `howmany devices` tells, as one JSON value (schema howmany.devices/1): the devices
// this machine offers and what this build can do with them. One thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace howmany::benches {

// {"schema", "cpu_devices": {"default_count", "cores_per_device", "usable_cores",
// "because", "allowed", "limits"}, "cpu", "numa", "caches", "memory", "gpus",
// "gpus_because", "driver", "backends": {"kernels", "comms"}, "launch", "modes", "models",
// "ranges"}. A kernel or comm is {"name", "what", "built", "usable", "why"}; usable was tried, not
// assumed, but for comms of a process that a launcher started among others.
nlohmann::json take_inventory();

}  // namespace howmany::benches
