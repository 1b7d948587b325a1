// SPDX-License-Identifier: Apache-2.0
// The limits on the number of loader workers on this machine, as JSON: cores (by affinity, cpuset,
// quota and Slurm), memory, /dev/shm, descriptors, processes. Nothing is measured.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace howmany::benches {

// {"cores", "cores_because", "memory_bytes", "memory_because", "shm_bytes" (free; null without
// /dev/shm), "descriptors", "processes" (null: no limit), "processes_because"}. `cores` keeps the
// fraction of a quota.
nlohmann::json describe_loader_limits();

}  // namespace howmany::benches
