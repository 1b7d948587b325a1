// SPDX-License-Identifier: Apache-2.0
// The keys of `loader_limits` in the context of loader_bench, which `howmany workers` reads.
#pragma once

namespace howmany::limit {

inline constexpr const char* kCores = "cores";
inline constexpr const char* kCoresBecause = "cores_because";
inline constexpr const char* kMemoryBytes = "memory_bytes";
inline constexpr const char* kMemoryBecause = "memory_because";
inline constexpr const char* kShmBytes = "shm_bytes";
inline constexpr const char* kDescriptors = "descriptors";
inline constexpr const char* kProcesses = "processes";
inline constexpr const char* kProcessesBecause = "processes_because";

}  // namespace howmany::limit
