// SPDX-License-Identifier: Apache-2.0
// The keys of `loader_bench --limits`, which `howmany workers` reads.
#pragma once

namespace howmany::limit {

inline constexpr const char* kCores = "cores";
inline constexpr const char* kCoresBecause = "cores_because";
inline constexpr const char* kCpuLimits = "cpu_limits";
inline constexpr const char* kMemoryBytes = "memory_bytes";
inline constexpr const char* kMemoryBecause = "memory_because";
inline constexpr const char* kShmBytes = "shm_bytes";
inline constexpr const char* kDescriptors = "descriptors";
inline constexpr const char* kProcesses = "processes";
inline constexpr const char* kProcessesBecause = "processes_because";

// An entry of cpu_limits.
inline constexpr const char* kSource = "source";
inline constexpr const char* kCpus = "cpus";
inline constexpr const char* kDetail = "detail";

}  // namespace howmany::limit
