// SPDX-License-Identifier: Apache-2.0
// Describes this machine as JSON for `howmany devices`: processor, NUMA nodes, caches, memory. A
// fact that the system does not report is null or absent, never guessed. Use from one thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace howmany::benches {

// {"model", "architecture", "sockets", "cores", "threads", "governor"}
nlohmann::json describe_cpu();
// [{"node", "cpus": "0-1", "memory_bytes"}]
nlohmann::json describe_numa();
// [{"level", "type": "data", "size_bytes", "count", "shared_by"}], smallest first
nlohmann::json describe_caches();
// {"total_bytes", "available_bytes", "limit_bytes", "limit_because", "shm_bytes",
// "shm_free_bytes"}; limit_bytes is null if there is no limit below the machine's memory
nlohmann::json describe_memory();
// Returns the usable bytes of memory, or infinity if the system does not report them.
double memory_bytes();

}  // namespace howmany::benches
