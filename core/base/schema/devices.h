// SPDX-License-Identifier: Apache-2.0
// The keys of `howmany-devices --json`, schema howmany.devices/1, that reports read.
#pragma once

namespace howmany::inventory {

inline constexpr const char* kCpuDevices = "cpu_devices";
inline constexpr const char* kGpus = "gpus";
inline constexpr const char* kGpusBecause = "gpus_because";
inline constexpr const char* kGpusUnknown = "gpus_unknown";
inline constexpr const char* kBackends = "backends";
inline constexpr const char* kLaunch = "launch";
inline constexpr const char* kModes = "modes";
inline constexpr const char* kModels = "models";

// Member cpu_devices.
inline constexpr const char* kUsableCores = "usable_cores";
inline constexpr const char* kDefaultCount = "default_count";
inline constexpr const char* kCoresPerDevice = "cores_per_device";
inline constexpr const char* kAllowed = "allowed";

// An entry of gpus.
inline constexpr const char* kIndex = "index";
inline constexpr const char* kUuid = "uuid";
inline constexpr const char* kVendor = "vendor";  // "nvidia" or "amd"
inline constexpr const char* kMemoryBytes = "memory_bytes";
inline constexpr const char* kIntegrated = "integrated";

// Member backends, and an entry of modes, models or backends.
inline constexpr const char* kKernels = "kernels";
inline constexpr const char* kComms = "comms";
inline constexpr const char* kName = "name";
inline constexpr const char* kUsable = "usable";
inline constexpr const char* kWhy = "why";
inline constexpr const char* kOverRanks = "over_ranks";

// Member launch.
inline constexpr const char* kLauncher = "launcher";
inline constexpr const char* kRank = "rank";
inline constexpr const char* kWorld = "world";
inline constexpr const char* kLocalRank = "local_rank";
inline constexpr const char* kLocalWorld = "local_world";
inline constexpr const char* kHost = "host";

}  // namespace howmany::inventory
