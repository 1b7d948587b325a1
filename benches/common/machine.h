// What this machine is, as JSON for `howmany devices`: processor, NUMA nodes, caches, memory. A
// fact the system does not show is null or absent, never guessed. One thread.
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
// "shm_free_bytes"}; limit_bytes is null when only the machine's memory limits
nlohmann::json describe_memory();
// What may be used of it here; infinite where the system does not say.
double memory_bytes();

}  // namespace howmany::benches
