// SPDX-License-Identifier: Apache-2.0
// The names of the parameters of a measurement, which benches write and reports read. Values are
// strings.
#pragma once

namespace howmany::parameter {

// Training.
inline constexpr const char* kMode = "mode";
inline constexpr const char* kModel = "model";
inline constexpr const char* kBackend = "backend";
inline constexpr const char* kDevices = "devices";
inline constexpr const char* kNodes = "nodes";  // absent: one
inline constexpr const char* kBatchPerDevice = "batch_per_device";
inline constexpr const char* kGlobalBatch = "global_batch";
inline constexpr const char* kScaling = "scaling";
inline constexpr const char* kKernels = "kernels";
inline constexpr const char* kPrecision = "precision";
inline constexpr const char* kCoresPerDevice = "cores_per_device";
inline constexpr const char* kWorkers = "workers";
inline constexpr const char* kRate = "rate";  // "samples_per_s" or "step_s": from its own output
inline constexpr const char* kEvidence = "evidence";  // of rows that are not measured
inline constexpr const char* kScript = "script";      // "1": of the user's own script
inline constexpr const char* kPython = "python";      // that ran the script
inline constexpr const char* kTorch = "torch";        // its version, and that of NCCL if used
inline constexpr const char* kUses = "uses";          // lightning.fabric, DistributedDataParallel

// Collectives.
inline constexpr const char* kOp = "op";
inline constexpr const char* kDtype = "dtype";
inline constexpr const char* kBytes = "bytes";
inline constexpr const char* kTiming = "timing";

// Copies.
inline constexpr const char* kKind = "kind";
inline constexpr const char* kThreads = "threads";
inline constexpr const char* kCount = "count";
inline constexpr const char* kDevice = "device";
inline constexpr const char* kFrom = "from";
inline constexpr const char* kTo = "to";
inline constexpr const char* kMemory = "memory";
inline constexpr const char* kHow = "how";
inline constexpr const char* kPath = "path";
inline constexpr const char* kBeside = "beside";
inline constexpr const char* kPart = "part";
inline constexpr const char* kBatch = "batch";

// Loaders.
inline constexpr const char* kData = "data";
inline constexpr const char* kRanks = "ranks";
inline constexpr const char* kPrefetch = "prefetch";
inline constexpr const char* kAs = "as";
inline constexpr const char* kOwn = "own";  // "1": the script's own number of workers
inline constexpr const char* kCold = "cold";

}  // namespace howmany::parameter
